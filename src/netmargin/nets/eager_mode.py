"""The base of modes that see every operation of a forward pass."""

from torch.utils._python_dispatch import TorchDispatchMode


class EagerMode(TorchDispatchMode):
    """A dispatch mode that does not import torch.compile, which takes 2 s, when it begins."""

    def __init__(self) -> None:
        super().__init__()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
