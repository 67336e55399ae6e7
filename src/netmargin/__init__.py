"""netmargin measures, maximizes and certifies the margins of neural networks.

Every public name is listed in `__init__.pyi` beside this file. A module is loaded when one of its
names is first used, because the linear-program and cone solvers, the plots and scikit-learn
together take a second to import.
"""

import copyreg
import importlib
import sys

import lazy_loader

from .version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# lazy_loader gives this module a class of its own. joblib and Dask send a module along with a
# function that uses it: by its name, as they send every other module.
copyreg.pickle(
    type(sys.modules[__name__]), lambda module: (importlib.import_module, (module.__name__,))
)
