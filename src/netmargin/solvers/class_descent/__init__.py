"""Support vector machines of several classes in one problem, by exact steps of one sample: the
engine of `joint_kernel`. Its answers are candidates: callers recompute what they prove in float64.
"""

from .descent import descend_classes

__all__ = ["descend_classes"]
