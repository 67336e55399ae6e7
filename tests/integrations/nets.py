"""The nets and data that the frameworks train in these tests: digits, as pictures and as tokens."""

import torch

import netmargin as nm

PIXELS = 17  # digits have brightness 0 to 16


def picture_net() -> torch.nn.Sequential:
    """A small convolutional net with BatchNorm and dropout, on pictures of digits."""
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 8, 8)),
        torch.nn.Conv2d(1, 8, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(512, 10),
    )


def pictures(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Digits as vectors of brightness."""
    return nm.datasets.digits(limit=n)


def tokens(n: int) -> dict[str, torch.Tensor]:
    """Digits as 64 tokens of brightness, with a mask and labels."""
    X, y = nm.datasets.digits(limit=n)
    ids = (X * (PIXELS - 1)).round().long()
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": y}


def token_net(**options):
    """A transformer of Hugging Face's, with two layers; options as of its configuration."""
    from transformers import BertConfig, BertForSequenceClassification

    return BertForSequenceClassification(
        BertConfig(
            vocab_size=PIXELS,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            num_labels=10,
            **options,
        )
    )


class Samples(torch.utils.data.Dataset):
    """A dict of tensors as a data set of dicts, which the Trainer takes."""

    def __init__(self, columns: dict[str, torch.Tensor]):
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns["labels"])

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {name: column[index] for name, column in self.columns.items()}


def largest_difference(ones: list[dict], others: list[dict]) -> float:
    """The largest relative difference between the numbers of two histories."""
    assert [[*row] for row in ones] == [[*row] for row in others]
    pairs = [
        (a, b)
        for one, other in zip(ones, others, strict=True)
        for a, b in zip(one.values(), other.values(), strict=True)
    ]
    assert all((a is None) == (b is None) for a, b in pairs)
    return max((abs(a - b) / max(abs(a), abs(b)) for a, b in pairs if a != b), default=0.0)
