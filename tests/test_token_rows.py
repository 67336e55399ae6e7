"""Rows of tokens as tokenizers leave them: of several lengths, and beside the text itself."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import netmargin as nm
from netmargin.nets.data import as_arrays

END = 9


class Tokens(nn.Embedding):
    """The mean over the tokens, and more the more of them are not the end of the text."""

    def forward(self, input_ids, attention_mask):
        kept = attention_mask[..., None].float()
        mean = (super().forward(input_ids) * kept).sum(1) / kept.sum(1)
        return mean * (input_ids != END).sum(1, keepdim=True)


class Held(nn.Module):
    """The same net, of which the embedding is a part."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 2, _weight=make_net().weight.detach())

    def forward(self, input_ids, attention_mask):
        kept = attention_mask[..., None].float()
        mean = (self.table(input_ids) * kept).sum(1) / kept.sum(1)
        return mean * (input_ids != END).sum(1, keepdim=True)


def draw_rows(n):
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(2, 9, (n,), generator=generator).tolist()
    return [
        {
            "input_ids": torch.randint(END, (length,), generator=generator).tolist(),
            "attention_mask": [1] * length,
            "label": number % 2,
            "text": f"row {number}",
        }
        for number, length in enumerate(lengths)
    ]


def pad(rows, *, left=False):
    """One batch, as wide as its longest row."""
    width = max(len(row["input_ids"]) for row in rows)

    def fill(name, value):
        padding = [[value] * (width - len(row[name])) for row in rows]
        pairs = zip(padding, (row[name] for row in rows), strict=True)
        return torch.tensor([some + own if left else own + some for some, own in pairs])

    labels = torch.tensor([row["label"] for row in rows])
    tokens = {"input_ids": fill("input_ids", END), "attention_mask": fill("attention_mask", 0)}
    return {**tokens, "labels": labels, "text": [row["text"] for row in rows]}


def make_net():
    torch.manual_seed(0)
    net = Tokens(10, 2)
    net.config = SimpleNamespace(pad_token_id=END)
    return net


def test_batches_of_several_widths_are_padded_where_a_mask_leaves_that_out(tmp_path):
    net, rows = make_net(), draw_rows(40)
    loader = DataLoader(rows, 4, collate_fn=pad)
    assert len({batch["input_ids"].shape[1] for batch in loader}) > 1
    streamed, whole = nm.measure(net, loader), nm.measure(net, as_arrays(loader, net))
    assert torch.allclose(streamed.q, whole.q, atol=1e-6)
    assert nm.page(net, loader, out=tmp_path / "page.html").bytes > 1000
    widths = [(torch.rand(4, width), torch.arange(4) % 2) for width in (3, 5)]
    with pytest.raises(nm.DataError, match="different shapes"):  # numbers are not padded
        nm.label_errors(widths)
    # Tokens padded on the left would stand at other places: the tokenizer is to pad them alike.
    loader = DataLoader(rows, 4, collate_fn=lambda some: pad(some, left=True))
    with pytest.raises(nm.DataError, match='padding="max_length"'):
        nm.page(net, loader, out=tmp_path / "page.html")


def test_text_beside_the_tokens_is_left_out():
    net = make_net()
    rows = [row for row in draw_rows(40) if len(row["input_ids"]) == 5]
    plain = [{key: value for key, value in row.items() if key != "text"} for row in rows]
    assert torch.equal(nm.measure(net, rows).q, nm.measure(net, plain).q)
    with pytest.raises(nm.DataError, match="no inputs but the text of 'text'"):
        nm.measure(net, [{"text": row["text"], "label": row["label"]} for row in rows])


def test_the_page_and_no_radius_is_next_where_distances_are_those_of_embeddings():
    data = pad(draw_rows(20))
    with torch.no_grad():
        data["labels"] = make_net()(data["input_ids"], data["attention_mask"]).argmax(1)
    # The scores of a net that is an embedding itself are no place where its tokens lie.
    with pytest.raises(nm.DataError, match="the model holds no embedding"):
        nm.input_margins(make_net(), data, progress=False)
    assert "nm.page(model, data)" in str(nm.measure(Held(), data, input_margins=True))
    linear, X = nn.Linear(2, 2), torch.randn(20, 2)
    report = nm.measure(linear, (X, linear(X).argmax(1)), input_margins=True)
    assert "nm.robustness(model, data)" in str(report)
