# The one table of public names. It is read twice: by type checkers, and at run time by __init__.py, which loads a
# module when one of its names is first used. A new public name is a line here, and nowhere else.

__version__: str

from . import (
    bounds as bounds,
)
from . import (
    callbacks as callbacks,
)
from . import (
    datasets as datasets,
)
from . import (
    estimators as estimators,
)
from . import (
    figures as figures,
)
from . import (
    flow as flow,
)
from . import (
    kernels as kernels,
)
from . import (
    losses as losses,
)
from . import (
    models as models,
)
from . import (
    papers as papers,
)
from . import (
    solvers as solvers,
)
from . import (
    theory as theory,
)
from . import (
    twolayer as twolayer,
)
from .ascent import (
    MarginAscent as MarginAscent,
)
from .ascent import (
    maximize_margin as maximize_margin,
)
from .callbacks import (
    Watch as Watch,
)
from .core.processes import (
    split_samples as split_samples,
)
from .core.saved_records import (
    load as load,
)
from .errors import (
    ArgumentError as ArgumentError,
)
from .errors import (
    CheckpointError as CheckpointError,
)
from .errors import (
    DataError as DataError,
)
from .errors import (
    DivergenceError as DivergenceError,
)
from .errors import (
    Interrupted as Interrupted,
)
from .errors import (
    MissingLibraryError as MissingLibraryError,
)
from .errors import (
    ModelError as ModelError,
)
from .errors import (
    NetmarginError as NetmarginError,
)
from .errors import (
    NonFiniteOutputError as NonFiniteOutputError,
)
from .errors import (
    NotHomogeneousError as NotHomogeneousError,
)
from .errors import (
    NotSeparatedError as NotSeparatedError,
)
from .errors import (
    OutOfMemoryError as OutOfMemoryError,
)
from .flow import (
    Trajectory as Trajectory,
)
from .flow import (
    gradient_flow as gradient_flow,
)
from .homogeneity import (
    Evidence as Evidence,
)
from .homogeneity import (
    Homogeneity as Homogeneity,
)
from .homogeneity import (
    Kind as Kind,
)
from .homogeneity import (
    analyse as analyse,
)
from .kkt import (
    Completeness as Completeness,
)
from .kkt import (
    KKTCertificate as KKTCertificate,
)
from .kkt import (
    TangentSVM as TangentSVM,
)
from .kkt import (
    certify as certify,
)
from .kkt import (
    tangent_svm as tangent_svm,
)
from .l2_robustness import (
    RobustnessReport as RobustnessReport,
)
from .l2_robustness import (
    robustness as robustness,
)
from .label_errors import (
    LabelErrors as LabelErrors,
)
from .label_errors import (
    label_errors as label_errors,
)
from .margins import (
    Comparison as Comparison,
)
from .margins import (
    InputMargins as InputMargins,
)
from .margins import (
    MarginReport as MarginReport,
)
from .margins import (
    compare as compare,
)
from .margins import (
    input_margins as input_margins,
)
from .margins import (
    measure as measure,
)
from .page import (
    PageFile as PageFile,
)
from .page import (
    page as page,
)
from .regularization import (
    RegularizationPath as RegularizationPath,
)
from .regularization import (
    WeakRegularization as WeakRegularization,
)
from .regularization import (
    interpolation_path as interpolation_path,
)
from .regularization import (
    regularization_path as regularization_path,
)
from .regularization import (
    weak_regularization as weak_regularization,
)
from .result import (
    Bracket as Bracket,
)
from .result import (
    Status as Status,
)
from .training import (
    AnnealedLR as AnnealedLR,
)
from .training import (
    ConstantLR as ConstantLR,
)
from .training import (
    Epochs as Epochs,
)
from .training import (
    History as History,
)
from .training import (
    LogLossBelow as LogLossBelow,
)
from .training import (
    LossBasedLR as LossBasedLR,
)
from .training import (
    MarginGrowthBelow as MarginGrowthBelow,
)
from .training import (
    RelativeLoss as RelativeLoss,
)
from .training import (
    Separated as Separated,
)
from .training import (
    load_weights as load_weights,
)
from .training import (
    save_weights as save_weights,
)
from .training import (
    train as train,
)
