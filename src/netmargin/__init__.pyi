# The one table of public names. It is read twice: by type checkers, and at run time by __init__.py, which loads a
# module when one of its names is first used. A new public name is a line here, and nowhere else.

__version__: str

from . import (
    bounds as bounds,
    callbacks as callbacks,
    datasets as datasets,
    estimators as estimators,
    figures as figures,
    flow as flow,
    kernels as kernels,
    losses as losses,
    models as models,
    papers as papers,
    solvers as solvers,
    theory as theory,
    twolayer as twolayer,
)
from .ascent import MarginAscent as MarginAscent, maximize_margin as maximize_margin
from .callbacks import Watch as Watch
from .core.saved_records import load as load
from .errors import (
    ArgumentError as ArgumentError,
    CheckpointError as CheckpointError,
    ClassNotOfferedError as ClassNotOfferedError,
    DataError as DataError,
    DivergenceError as DivergenceError,
    Interrupted as Interrupted,
    MissingLibraryError as MissingLibraryError,
    ModelError as ModelError,
    NetmarginError as NetmarginError,
    NonFiniteOutputError as NonFiniteOutputError,
    NotHomogeneousError as NotHomogeneousError,
    NotSeparatedError as NotSeparatedError,
    OutOfMemoryError as OutOfMemoryError,
)
from .flow import Trajectory as Trajectory, gradient_flow as gradient_flow
from .homogeneity import (
    Evidence as Evidence,
    Homogeneity as Homogeneity,
    Kind as Kind,
    analyse as analyse,
)
from .kkt import (
    Completeness as Completeness,
    KKTCertificate as KKTCertificate,
    TangentSVM as TangentSVM,
    certify as certify,
    tangent_svm as tangent_svm,
)
from .label_errors import LabelErrors as LabelErrors, label_errors as label_errors
from .margins import (
    Comparison as Comparison,
    InputMargins as InputMargins,
    MarginReport as MarginReport,
    compare as compare,
    input_margins as input_margins,
    measure as measure,
)
from .nets.shared import split_samples as split_samples
from .page import PageFile as PageFile, page as page
from .radii import RobustnessReport as RobustnessReport, robustness as robustness
from .regularization import (
    RegularizationPath as RegularizationPath,
    WeakRegularization as WeakRegularization,
    regularization_path as regularization_path,
    weak_regularization as weak_regularization,
)
from .result import Bracket as Bracket, Status as Status
from .training import (
    AnnealedLR as AnnealedLR,
    ConstantLR as ConstantLR,
    Epochs as Epochs,
    History as History,
    LogLossBelow as LogLossBelow,
    LossBasedLR as LossBasedLR,
    MarginGrowthBelow as MarginGrowthBelow,
    RelativeLoss as RelativeLoss,
    Separated as Separated,
    load_weights as load_weights,
    save_weights as save_weights,
    train as train,
)
