"""What people pass in: every kind of net and of batch gives the numbers of its plain form."""

import copy
import math
import types
import warnings
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_iris
from torch import nn

import netmargin as nm

WORDS, LENGTH, N = 7, 4, 10
torch.manual_seed(0)
TOKENS = torch.randint(WORDS, (N, LENGTH))
MASK = (torch.arange(LENGTH) < torch.randint(1, LENGTH + 1, (N, 1))).long()
IMAGES = torch.randn(N, 3)


@dataclass
class Outputs:
    """What transformers return: a record with logits."""

    loss: torch.Tensor
    logits: torch.Tensor


class Plain(nn.Module):
    """A homogeneous net of order 2 on images, or on tokens and their mask packed side by side."""

    def __init__(self, tokens: bool, give=lambda scores: scores):
        super().__init__()
        self.first = nn.Embedding(WORDS, 5) if tokens else nn.Linear(3, 5, bias=False)
        self.last = nn.Linear(5, 2, bias=False)
        self._give = give

    def features(self, x, mask=None):
        if mask is None:
            return nn.functional.leaky_relu(self.first(x))
        kept = mask.to(self.last.weight.dtype)[..., None]
        return nn.functional.leaky_relu((self.first(x) * kept).sum(1) / kept.sum(1))

    def forward(self, x):
        mask = x[:, 1] if x.ndim == 3 else None
        return self._give(self.last(self.features(x if mask is None else x[:, 0], mask)))


class ByName(Plain):
    def forward(self, input_ids, attention_mask=None, labels=None):
        return self._give(self.last(self.features(input_ids, attention_mask)))


class Scaled(Plain):
    def forward(self, scale, pixels):
        return self.last(self.features(pixels * scale.reshape(-1, 1)))


class OfDict(Plain):
    def forward(self, batch):
        return self._give(self.last(self.features(batch["input_ids"], batch["attention_mask"])))


def separated(net: nn.Module, x: torch.Tensor) -> tuple[nn.Module, torch.Tensor]:
    """The net, and labels that it gives the samples."""
    with torch.no_grad():
        return net, net(x).argmax(1)


PACKED = torch.stack([TOKENS, MASK], 1)
IMAGE_NET, IMAGE_LABELS = separated(Plain(tokens=False), IMAGES)
TOKEN_NET, TOKEN_LABELS = separated(Plain(tokens=True), PACKED)
NAMED = {"input_ids": TOKENS, "attention_mask": MASK}


def like(net: nn.Module, kind: type, give=lambda scores: scores) -> nn.Module:
    """A net of another kind with the same weights."""
    other = kind(isinstance(net.first, nn.Embedding), give)
    other.load_state_dict(net.state_dict())
    return other


class Loader:
    """Batches that can be read again and again."""

    def __init__(self, *parts):
        self.parts = parts

    def __iter__(self):
        return iter(self.parts)


def half(batch: dict, labels: torch.Tensor) -> list[dict]:
    return [
        {key: part[rows] for key, part in (batch | {"labels": labels}).items()}
        for rows in (slice(0, 6), slice(6, None))
    ]


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return N

    def __getitem__(self, n):
        return {key: part[n] for key, part in NAMED.items()} | {"labels": TOKEN_LABELS[n]}


NAMED_NET = like(TOKEN_NET, ByName)
IMAGE = (IMAGE_NET, (IMAGES, IMAGE_LABELS))
TOKEN = (TOKEN_NET, (PACKED, TOKEN_LABELS))
BATCHES = (
    TOKEN_NET,
    [(PACKED[rows], TOKEN_LABELS[rows]) for rows in (slice(0, 6), slice(6, None))],
)
KINDS = {  # name: what is given, and its plain form
    "arrays in another order of bytes": (
        IMAGE_NET,
        tuple(tensor.numpy().astype(f">{tensor.numpy().dtype.str[1:]}") for tensor in IMAGE[1]),
        IMAGE,
    ),
    "a dict of outputs": (
        like(IMAGE_NET, Plain, lambda s: {"loss": s.sum(), "logits": s, "hidden": s + 1}),
        IMAGE[1],
        IMAGE,
    ),
    "a record of outputs": (
        like(IMAGE_NET, Plain, lambda s: Outputs(s.sum(), s)),
        IMAGE[1],
        IMAGE,
    ),
    "scores and a map": (like(IMAGE_NET, Plain, lambda s: (s, s[..., None])), IMAGE[1], IMAGE),
    "loss and scores": (like(IMAGE_NET, Plain, lambda s: (s.sum(), s)), IMAGE[1], IMAGE),
    "a frame and a series": (
        IMAGE_NET,
        (
            pd.DataFrame(IMAGES.numpy(), columns=list("abc")).astype({"a": "Float32"}),
            pd.Series(IMAGE_LABELS.numpy(), dtype="Int64", index=range(5, 5 + N)),
        ),
        IMAGE,
    ),
    "a dict of tokens, mask and labels": (NAMED_NET, NAMED | {"labels": TOKEN_LABELS}, TOKEN),
    "a dict and labels": (NAMED_NET, (NAMED, TOKEN_LABELS), TOKEN),
    "a net that takes the dict": (like(TOKEN_NET, OfDict), (NAMED, TOKEN_LABELS), TOKEN),
    "a boolean mask": (
        NAMED_NET,
        (NAMED | {"attention_mask": MASK.bool()}, TOKEN_LABELS),
        TOKEN,
    ),
    "a floating mask, arrays": (
        NAMED_NET,
        ({"input_ids": TOKENS.numpy(), "attention_mask": MASK.double()}, TOKEN_LABELS.tolist()),
        TOKEN,
    ),
    "a list of dicts": (NAMED_NET, half(NAMED, TOKEN_LABELS), BATCHES),
    "a stream of dicts": (NAMED_NET, Loader(*half(NAMED, TOKEN_LABELS)), BATCHES),
    "a loader of dicts": (
        NAMED_NET,
        torch.utils.data.DataLoader(Samples(), batch_size=6),
        BATCHES,
    ),
    "pairs of dict and labels": (
        NAMED_NET,
        [(part, part.pop("labels")) for part in half(NAMED, TOKEN_LABELS)],
        BATCHES,
    ),
    "dicts of one sample": (
        NAMED_NET,
        [
            {"input_ids": TOKENS[n].tolist(), "attention_mask": MASK[n], "label": int(label)}
            for n, label in enumerate(TOKEN_LABELS)
        ],
        TOKEN,
    ),
    "numbers and whole numbers of two shapes": (
        like(IMAGE_NET, Scaled),
        {"pixels": IMAGES, "scale": torch.ones(N, dtype=torch.long), "y": IMAGE_LABELS},
        (*IMAGE,),
    ),
    "numbers of two shapes": (
        like(IMAGE_NET, Scaled),
        ({"pixels": IMAGES, "scale": torch.ones(N, 1)}, IMAGE_LABELS),
        IMAGE,
    ),
    "one input by another name": (IMAGE_NET, {"pixels": IMAGES, "label": IMAGE_LABELS}, IMAGE),
}


def train(model, data):
    model = copy.deepcopy(model)
    history = nm.train(model, data, until=nm.Epochs(2), lr=nm.ConstantLR(0.1), progress=False)
    return [row["q_min"] for row in history.rows], model.last.weight.tolist()


def maximize_margin(model, data):
    model = copy.deepcopy(model)
    brief = {"temperatures": (0.1,), "iterations": 3, "progress": False}
    return nm.maximize_margin(model, data, **brief).report.q


def inputs_of(data):
    return (
        {k: v for k, v in data.items() if k not in ("labels", "y")}
        if isinstance(data, dict)
        else data[0]
    )


CALLS = {
    "measure": lambda model, data: nm.measure(model, data).q,
    "analyse": lambda model, data: nm.analyse(model, inputs_of(data)).to_dict(),
    "check": lambda model, data: (
        nm.analyse(model, inputs_of(data)).check(model, inputs_of(data)).deviation
    ),
    "train": train,
    "certify": lambda model, data: nm.certify(model, data).relative_epsilon,
    "tangent_svm": lambda model, data: nm.tangent_svm(model, data).cosine,
    "maximize_margin": maximize_margin,
    "gradient_flow": lambda model, data: nm.gradient_flow(
        model, data, time=0.01, rtol=1e-4, progress=False
    ).rows[-1]["q_min"],
    "regularization_path": lambda model, data: nm.regularization_path(
        lambda: copy.deepcopy(model), data, lambdas=[1e-2], starts=1, iterations=5, progress=False
    ).rows[-1]["normalized_margin"],
    "empirical_ntk": lambda model, data: nm.kernels.empirical_ntk(model, inputs_of(data)),
    "robustness": lambda model, data: nm.robustness(model, data, attacks=False, progress=False).q,
}
WHOLE = ("analyse", "check", "empirical_ntk")
"""Functions that take inputs without labels."""


@pytest.mark.nightly_cases("maximize_margin", "regularization_path")
@pytest.mark.slow_cases("certify", "gradient_flow", "tangent_svm", "train")
@pytest.mark.parametrize("call", CALLS)
def test_every_function_takes_what_people_have(call):
    answers = {}
    for kind, (model, data, plain) in KINDS.items():
        if call == "robustness" and plain is not IMAGE:
            with pytest.raises(nm.DataError, match="whole numbers.*cannot be moved"):
                CALLS[call](model, data)
            continue
        if call in WHOLE and not isinstance(data, (dict, tuple)):
            data, plain = (NAMED, TOKEN_LABELS), TOKEN  # without labels there are no batches
        if id(plain) not in answers:
            answers[id(plain)] = CALLS[call](*plain)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        given, expected = CALLS[call](model, data), answers[id(plain)]
        if isinstance(given, dict):
            assert given == expected, kind
        else:
            for ours, theirs in zip(_flat(given), _flat(expected), strict=True):
                assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-7), kind
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        assert not model._forward_pre_hooks


def _flat(answer):
    return map(np.asarray, answer) if isinstance(answer, tuple) else [np.asarray(answer)]


@pytest.mark.slow_cases("kind0-maximize_margin", "kind0-regularization_path", "kind1")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_every_function_takes_half_precision(call, kind):
    """What is computed in float64 agrees with that of the same weights in float32, bit for bit."""
    rough = like(IMAGE_NET, Plain).to(kind)
    fine = copy.deepcopy(rough).float()
    data = IMAGE[1]
    given, expected = CALLS[call](rough, data), CALLS[call](fine, data)
    if call == "analyse":
        assert {**given, "deviation": 0} == {**expected, "deviation": 0}
    elif call in ("certify", "tangent_svm", "gradient_flow", "empirical_ntk", "robustness"):
        assert np.array_equal(given, expected)
    elif call in ("measure", "train"):
        for ours, theirs in zip(_flat(given), _flat(expected), strict=True):
            assert np.allclose(ours, theirs, rtol=0.05, atol=0.02)
    else:
        assert np.isfinite(np.asarray(given)).all()


class Tied(Plain):
    """One weight in two modules."""

    def __init__(self):
        super().__init__(tokens=False)
        self.back = nn.Linear(5, 5, bias=False)
        self.again = nn.Linear(5, 5, bias=False)
        self.again.weight = self.back.weight

    def features(self, x, mask=None):
        return self.again(self.back(super().features(x)))


class Shared(Tied):
    """One module under two names."""

    def __init__(self):
        super().__init__()
        self.again = self.back


@pytest.mark.slow_cases("Shared")
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", [Tied, Shared])
def test_every_function_counts_a_tied_weight_once(call, kind):
    torch.manual_seed(0)
    net = kind()
    places = {n: (p, p.clone()) for n, p in net.named_parameters(remove_duplicate=False)}
    data = (IMAGES, separated(net, IMAGES)[1])
    answer = CALLS[call](net, data)
    if call == "analyse":
        assert answer["order"] == 4
        assert answer["groups"]["back"] == 2
        report = nm.measure(net, data)
        squares = [
            float(net.get_parameter(f"{n}.weight").detach().square().sum())
            for n in ("first", "back", "last")
        ]
        assert report.norm == pytest.approx(sum(squares) ** 0.5, rel=1e-6)
    assert net.again.weight is net.back.weight
    for name, (parameter, value) in places.items():
        assert net.get_parameter(name) is parameter
        assert torch.equal(parameter, value)


def test_several_labels_are_refused_with_an_argument_that_works():
    with pytest.raises(nm.DataError, match=r"y.argmax\(1\)"):
        nm.measure(IMAGE_NET, (IMAGES, nn.functional.one_hot(IMAGE_LABELS)))
    for dtype in (torch.float64, torch.bfloat16):  # of a mixture, or smoothed
        with pytest.raises(nm.DataError, match=r"y.argmax\(1\)"):
            nm.measure(IMAGE_NET, (IMAGES, torch.rand(N, 3).softmax(1).to(dtype)))
    for shape, net in (((N, 3), IMAGE_NET), ((N, 2, 4), _Pixels())):
        y = torch.randint(2, shape)
        y[0] = 1  # no sample-wise single one
        for data in ((IMAGES, y), [(IMAGES, y)]):
            with pytest.raises(nm.DataError, match="several labels per sample") as raised:
                nm.measure(net, data)
        first = y.reshape(N, -1)[:, 0]
        scores = eval(str(raised.value).partition("scores=")[2])
        with torch.no_grad():
            # One score of each sample, or one for each of two classes.
            chosen = scores(net(IMAGES)).double().reshape(N, -1)
            expected = (chosen[:, -1] - chosen[:, :-1].sum(1)) * (2 * first - 1)
        found = nm.measure(net, (IMAGES, first), scores=scores)
        assert found.q.tolist() == expected.tolist()


class _Pixels(Plain):
    def __init__(self):
        super().__init__(False, lambda scores: scores[:, :, None, None].expand(-1, 2, 2, 4))


def test_words_in_a_frame_are_named():
    frame = pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.raises(nm.DataError, match=r"text in 'colour'.*pandas.get_dummies"):
        nm.measure(IMAGE_NET, (frame, [0, 1]))


@pytest.mark.parametrize(
    "words",
    [
        pd.Categorical(["red", "blue"]),
        pd.array(["red", "blue"], dtype="string"),
        pd.Series(["red", "blue"]),
        pd.MultiIndex.from_tuples([("red", 1), ("blue", 2)]),
    ],
    ids=lambda words: type(words).__name__,
)
def test_words_in_what_has_no_name_are_named_as_the_argument(words):
    with pytest.raises(nm.DataError, match=r"X holds text in 'X'.*pandas.get_dummies"):
        nm.measure(IMAGE_NET, (words, [0, 1]))


SENTENCES = ["a good film", "a bad one"]


@pytest.mark.parametrize(
    "text",
    [
        SENTENCES,
        tuple(SENTENCES),
        np.array(SENTENCES),
        np.array(SENTENCES, dtype=object),
        [[1.0, "red"], [2.0, "blue"]],
        pd.Series(SENTENCES),
        pd.DataFrame({"text": SENTENCES}),
        {"text": SENTENCES},
    ],
    ids=lambda text: type(text).__name__,
)
def test_sentences_are_to_be_tokenized(text):
    """In every place where samples are read; labels are to be numbered."""
    calls = [
        lambda: nm.measure(IMAGE_NET, (text, [0, 1])),
        lambda: nm.measure(IMAGE_NET, [(text, [0, 1])]),
        lambda: nm.label_errors((text, [0, 1])),
        lambda: nm.analyse(IMAGE_NET, text),
        lambda: nm.solvers.linear_max_margin(text, [1, -1]),
    ]
    for call in calls[: -1 if isinstance(text, dict) else None]:
        with pytest.raises(nm.DataError, match="(?i)tokenize"):
            call()
    with pytest.raises(nm.DataError, match="np.unique"):
        nm.solvers.linear_max_margin([[1.0], [2.0]], SENTENCES)
    written = np.array([["1.5", 2.0], ["-1", 0.0]], dtype=object)  # numbers, as files have them
    found = nm.solvers.linear_max_margin(written, [1, -1])
    assert found.margin == nm.solvers.linear_max_margin(written.astype(float), [1, -1]).margin


def test_labels_that_are_text_name_the_classes():
    torch.manual_seed(0)
    net, X, y = nn.Linear(4, 3), torch.randn(30, 4), torch.arange(30) % 3
    names, expected = np.array(["cat", "dog", "hare"]), nm.measure(net, (X, y)).q
    categories = pd.Categorical(names[y], categories=["cat", "dog", "hare"])
    for labels in (
        names[y],
        list(names[y]),
        pd.Series(names[y]),
        categories,
        pd.Series(categories),
    ):
        for data in ((X, labels), {"input": X, "labels": labels}):
            with pytest.warns(
                UserWarning, match="numbered 0 'cat', 1 'dog', 2 'hare', in .*alphabet"
            ):
                found = nm.measure(net, data)
            assert torch.equal(found.q, expected)
            assert found.class_names == ("cat", "dog", "hare")
    # The order is that of the categories, or of the names that are given, and not the alphabet's.
    turned = pd.Categorical(names[y], categories=["hare", "dog", "cat"])
    other = nm.measure(net, (X, 2 - y)).q
    assert torch.equal(nm.measure(net, (X, turned)).q, other)
    given = ["hare", "dog", "cat"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nm.measure(net, (X, names[y]), class_names=given)  # an order that is given is no guess
        nm.label_errors((X, names[y]))  # nor is there a net
    assert torch.equal(nm.measure(net, (X, names[y]), class_names=given).q, other)
    # Both data sets of a call are read by the same names, also where one lacks some.
    found = nm.compare([net, net], (X, names[y]), (X[1:3], names[y[1:3]]), progress=False)
    assert found.reports[0].labels.tolist() == [1, 2]
    for data, options, message in (
        ((X[1:3], names[y[1:3]]), {}, "2 names, and the net 3 classes.*lack some"),
        ((X[:1], ["cat"]), {}, "All labels are 'cat'.*class_names"),
        ((X, names[y]), {"class_names": ["cat", "dog", "cow"]}, "'hare', which is none of"),
    ):
        with pytest.raises(nm.NetmarginError, match=message):
            nm.measure(net, data, **options)


def test_text_is_read_alike_by_every_function():
    """Beside a net with a warning; too few classes, missing labels and batches are refused."""
    torch.manual_seed(0)
    net, X = nn.Linear(4, 3, bias=False), torch.randn(12, 4)
    y = net(X).argmax(1)
    names = np.array(["cat", "dog", "hare"])
    text = names[y]
    rows = [{"input": x.tolist(), "label": str(label)} for x, label in zip(X, text, strict=True)]
    calls = {
        "measure": lambda data: nm.measure(net, data).q,
        "input_margins": lambda data: nm.input_margins(net, data, progress=False).distances,
        "certify": lambda data: nm.certify(net, data).relative_epsilon,
        "robustness": lambda data: nm.robustness(net, data, attacks=False, progress=False).lower,
        "Watch": lambda data: [nm.Watch(net, data).history.rows[0]["q_min"]],
        "train": lambda data: [
            nm.train(
                copy.deepcopy(net), data, until=nm.Epochs(1), lr=nm.ConstantLR(0.1), progress=False
            ).rows[-1]["q_min"]
        ],
    }
    missing = [None, *text[1:].tolist()]
    few = np.flatnonzero(y.numpy() != 1)
    for name, call in calls.items():
        torch.manual_seed(0)  # the order of the batches of `train`
        expected = call((X, y))
        for data in ((X, text), {"input": X, "labels": text}, rows):
            torch.manual_seed(0)
            with pytest.warns(
                UserWarning, match="numbered 0 'cat', 1 'dog', 2 'hare', .* in theirs"
            ):
                found = call(data)
            assert np.array_equal(found, expected), name
        for data, message in (
            ((X, missing), "y holds None in place of a value for sample 0, 1 in all. Leave"),
            ((X, pd.Categorical(missing)), "y holds nan in place of a value for sample 0"),
            ([(X, text.tolist())], "Batch 0 has labels that are text. Let the data set number"),
        ):
            with pytest.raises(nm.DataError, match=message):
                call(data)
        with (
            pytest.raises(nm.NetmarginError, match="2 names, and the net 3|text of 2 classes"),
            pytest.warns(UserWarning, match="numbered 0 'cat', 1 'hare'"),
        ):
            call((X[few], text[few]))
        assert np.array_equal(
            call((X[few], y[few])), call((X[few], y[few]))
        )  # numbers may lack some
    assert nm.analyse(net, (X, text)).order == 1
    for same in (pd.DataFrame({"cat": text}), pd.Series(text, dtype="string"), text.astype(object)):
        assert np.array_equal(calls["measure"]((X, same)), calls["measure"]((X, y)))
    assert np.array_equal(calls["measure"]((X, y.numpy().astype(object))), calls["measure"]((X, y)))
    digits = [str(n) for n in range(12)]  # "10" comes after "9"
    assert nm.measure(nn.Linear(4, 12), (X, digits)).labels.tolist() == list(range(12))
    assert nm.label_errors(rows).class_names == ("cat", "dog", "hare")


class Named(torch.utils.data.TensorDataset):
    """As torchvision's data sets."""

    classes = ("cats", "dogs", "hares")


class Features(list):
    """As Hugging Face's data sets."""

    column_names = ("input", "label")

    def __init__(self, rows):
        super().__init__(rows)
        self.features = {"label": mock.Mock(names=list(Named.classes))}


def test_class_names_come_with_a_data_set(tmp_path):
    torch.manual_seed(0)
    net, X, y = nn.Linear(4, 3), torch.randn(30, 4), torch.arange(30) % 3
    whole = Named(X, y)
    rows = Features({"input": x, "label": int(label)} for x, label in zip(X, y, strict=True))
    for data in (
        whole,
        torch.utils.data.Subset(whole, range(9)),
        torch.utils.data.random_split(whole, [9, 21])[0],
        torch.utils.data.DataLoader(torch.utils.data.Subset(whole, range(9)), shuffle=True),
        rows,
    ):
        found = nm.compare([net, nn.Linear(4, 3)], heldout=data, progress=False)
        assert found.reports[1].class_names == Named.classes
        assert "cats" in found.class_frame().index
        assert nm.input_margins(net, data, progress=False).class_names == Named.classes
        assert nm.label_errors(data).class_names == Named.classes
        watch = nm.Watch(net, data)
        assert watch.report.class_names == Named.classes
        assert "hares" in nm.page(net, data, out=tmp_path / "page.html").path.read_text()
        # Names that are given come first, and names of other classes name none of the net's.
        assert nm.measure(net, data, class_names=["a", "b", "c"]).class_names == ("a", "b", "c")
        assert nm.measure(nn.Linear(4, 5), data).class_names is None
        page = nm.page(nn.Linear(4, 5), data, out=tmp_path / "page.html").path.read_text()
        assert "hares" not in page
    whole.classes = [("crane", "bird"), ("lift",), ("lift",)]  # as those of ImageNet
    assert nm.measure(net, whole).class_names == ("crane, bird", "lift (1)", "lift (2)")


def test_class_names_come_with_a_net_or_a_set_of_scikit_learn(tmp_path):
    torch.manual_seed(0)
    net, data = nn.Sequential(nn.Linear(4, 3)), (torch.randn(30, 4), torch.arange(30) % 3)
    net[0].config = types.SimpleNamespace(id2label={"2": "foxes", "0": "cats", "1": "dogs"})
    names = ("cats", "dogs", "foxes")
    assert nm.measure(net, data).class_names == names
    assert nm.compare({"a": net, "b": net}, data, progress=False).reports[1].class_names == names
    assert nm.compare([net, net], data, progress=False).reports[0].class_names == names
    assert "foxes" in nm.page(net, data, out=tmp_path / "page.html").path.read_text()
    assert nm.measure(net, Named(*data)).class_names == Named.classes  # of the data first
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the order of text is that of the outputs, and no guess
        text = (data[0], [names[2 - n] for n in data[1]])
        assert nm.measure(net, text).labels.tolist() == (2 - data[1]).tolist()
    bunch = load_iris()
    assert nm.measure(nn.Linear(4, 3), bunch).class_names == tuple(bunch.target_names)
    assert nm.label_errors(load_iris(as_frame=True)).given.tolist() == bunch.target.tolist()
    net[0].config.id2label = {n: f"LABEL_{n}" for n in range(3)}
    assert nm.measure(net, data).class_names is None


class Odd(torch.utils.data.Dataset):
    """Ten samples, of which one is odd."""

    def __init__(self, odd):
        self.odd = odd

    def __len__(self):
        return 10

    def __getitem__(self, index):
        return self.odd if index == 7 else (torch.zeros(4), index % 2)


@pytest.mark.parametrize("odd", [None, (torch.zeros(3), 1), (torch.zeros(4), None), (object(), 0)])
def test_samples_that_make_no_batch_are_said_with_a_way_out(odd):
    with pytest.raises(nm.DataError, match="cannot be put into one batch.*collate_fn"):
        nm.measure(nn.Linear(4, 2), Odd(odd))


@pytest.mark.parametrize("second", [torch.zeros(6), torch.zeros(6, 4), torch.zeros(3)])
def test_several_inputs_without_names_are_refused_with_the_way_to_give_them(second):
    net, y = nn.Linear(4, 2), torch.arange(6) % 2
    for X in ((torch.zeros(6, 4), second), [torch.zeros(6, 4), second]):
        for data in ((X, y), [(X, y)], [(X, y)] * 2, [(X, y)] * 3):
            with pytest.raises(nm.DataError, match="X holds 2 inputs. Give them by the names"):
                nm.measure(net, data)
    rows = [torch.zeros(4), torch.ones(4)]  # a list of samples
    assert nm.measure(net, (rows, torch.tensor([0, 1]))).n == 2
    assert nm.measure(net, [(rows, [0, 1])] * 3).n == 6


def test_a_collate_that_leaves_samples_out_is_said():
    def collate(samples):
        return torch.utils.data.default_collate([s for s in samples if s is not None])

    def load(batch_size, odd=None):
        return torch.utils.data.DataLoader(Odd(odd), batch_size, collate_fn=collate)

    net = nn.Linear(4, 2)
    y = [index % 2 for index in range(10) if index != 7]
    expected = nm.measure(net, (torch.zeros(9, 4), y)).q
    said = "yields 9 rows for 10 samples of its data set, as where a collate_fn or drop_last leaves some out"
    for call in (
        lambda data: nm.measure(net, data),
        lambda data: nm.input_margins(net, data, progress=False),
        lambda data: nm.compare([net, nn.Linear(4, 2)], data, progress=False).reports[0],
    ):
        with pytest.warns(UserWarning, match=said):
            assert torch.equal(call(load(4)).q, expected)
    with pytest.raises(nm.DataError, match="Batch|batch"):
        nm.measure(net, [None])
    with pytest.raises(IndexError):  # torch's own, of a batch in which nothing is left
        nm.measure(net, load(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nm.measure(net, load(4, (torch.zeros(4), 1)))


@pytest.mark.parametrize(
    "mark", [None, math.nan, -1, -100], ids=["None", "NaN", "minus one", "minus one hundred"]
)
def test_missing_labels_are_said_and_never_a_class(mark):
    net, X = nn.Linear(4, 3), torch.randn(9, 4)
    y = [0, 1, 2] * 3
    bad = [*y[:5], mark, *y[6:]]
    for data in ((X, bad), (X, pd.Series(bad)), [(X[:4], y[:4]), (X[4:], bad[4:])]):
        for call in (
            lambda data: nm.compare([net, net], heldout=data, progress=False),
            lambda data: nm.measure(net, data),
            lambda data: nm.train(net, data, until=nm.Epochs(1), progress=False),
            nm.label_errors,
        ):
            with pytest.raises(
                nm.DataError, match=r"place of a value for sample [15], 1 in all. Leave"
            ):
                call(data)


def test_classes_156_and_255_of_one_byte_are_no_missing_labels():
    y = torch.tensor([0, 156, 255], dtype=torch.uint8)
    assert nm.measure(nn.Linear(4, 256), (torch.randn(3, 4), y)).labels.tolist() == [0, 156, 255]


def test_classes_that_only_one_of_two_sets_has():
    """Numbers are those of each set alone, and text is numbered over both."""
    net, other, X = nn.Linear(4, 3), nn.Linear(4, 3), torch.randn(12, 4)
    y = torch.arange(12) % 3
    some, rest = y != 2, y != 0
    found = nm.compare([net, other], (X[some], y[some]), (X[rest], y[rest]), progress=False)
    assert torch.equal(found.reports[0].q, nm.measure(net, (X[rest], y[rest])).q)
    assert found.class_frame().index.tolist() == ["1", "2"]
    text = np.array(["cat", "dog", "hare"])[y]
    with pytest.warns(UserWarning, match="numbered 0 'cat', 1 'dog', 2 'hare'"):
        named = nm.compare(
            [net, other], (X[some], text[some]), (X[rest], text[rest]), progress=False
        )
    assert torch.equal(named.reports[0].q, found.reports[0].q)
    assert named.class_frame().index.tolist() == ["dog", "hare"]


def test_inputs_by_name_are_refused_by_name():
    for data, message in (
        (NAMED | {"idx": torch.arange(N), "labels": TOKEN_LABELS}, "no place for idx"),
        (NAMED | {"types": TOKENS, "labels": TOKEN_LABELS}, "no place for types. Leave it out"),
        (NAMED | {"attention_mask": MASK[:5], "labels": TOKEN_LABELS}, "has 5 rows"),
        (NAMED | {"attention_mask": torch.ones(40), "labels": TOKEN_LABELS}, "padded where"),
        ({"labels": TOKEN_LABELS}, "holds labels, but no inputs"),
        ([NAMED], "none of which is for labels"),
        (half(NAMED, TOKEN_LABELS)[:1] + half({"input_ids": TOKENS}, TOKEN_LABELS), "Give every"),
    ):
        with pytest.raises((nm.DataError, nm.ModelError), match=message):
            nm.measure(NAMED_NET, data)


def test_a_stream_is_looked_at_without_a_trace():
    """Who looks at the first batch leaves the generator of torch and one-pass iterables whole."""
    loader = torch.utils.data.DataLoader(Samples(), batch_size=3, shuffle=True)
    torch.manual_seed(5)
    loader_seed = torch.empty((), dtype=torch.int64).random_()  # what every pass draws
    expected = torch.get_rng_state()
    torch.manual_seed(5)
    report = nm.measure(NAMED_NET, loader)
    assert torch.equal(torch.get_rng_state(), expected), loader_seed
    plain = nm.measure(TOKEN_NET, (PACKED, TOKEN_LABELS))
    assert torch.allclose(report.q, plain.q, atol=1e-6)
    once = (batch for batch in half(NAMED, TOKEN_LABELS))
    assert torch.allclose(nm.measure(NAMED_NET, once).q, plain.q, atol=1e-6)


class Differently(nn.Linear):
    """Neither of its outputs depends on the weights by a derivative."""

    def forward(self, x):
        return super().forward(x).detach()


@pytest.mark.parametrize("call", sorted(set(CALLS) - {"measure", "analyse", "check", "robustness"}))
def test_outputs_without_a_derivative_are_refused(call):
    torch.manual_seed(0)
    net = Differently(3, 2, bias=False)
    with pytest.raises(nm.ModelError, match="no derivative in its parameters"):
        CALLS[call](net, (IMAGES, separated(net, IMAGES)[1]))


@pytest.mark.parametrize("call", CALLS)
def test_integer_weights_are_refused(call):
    net = nn.Linear(3, 2, bias=False)
    net.weight = nn.Parameter(torch.ones(2, 3, dtype=torch.int8), requires_grad=False)
    with pytest.raises(nm.ModelError, match="Integer: parameter 'weight' is of type torch.int8"):
        CALLS[call](net, (IMAGES, IMAGE_LABELS))


def test_pictures_call_classes_by_their_names(monkeypatch, tmp_path):
    drawn = {}

    def keep(drawings, folder):
        drawn.update(drawings)
        return []

    monkeypatch.setattr("netmargin.figures.certificate.save_drawings", keep)
    X = torch.eye(16).repeat(2, 1)[:20]
    y = (torch.arange(20) % 16) % 3
    names = ["cat", "dog", "hare"]
    net = nn.Linear(16, 3, bias=False)
    net.weight.data = torch.stack([X[y == c].sum(0) for c in range(3)])
    certificate = nm.certify(net, (X, y))
    nm.figures.draw_certificate(certificate, X, y, tmp_path, class_names=names)
    shown = {axis.get_title().split("\n")[0] for axis in drawn["support"].axes} - {""}
    assert shown
    assert all(set(title.split(" | ")) <= set(names) for title in shown)
    for wrong in ("cat", ["cat"], [1, 2]):
        with pytest.raises(nm.ArgumentError, match="class_names must be a list of names"):
            nm.figures.draw_certificate(certificate, X, y, tmp_path, class_names=wrong)
    with pytest.raises(nm.DataError, match="X and y must be arrays"):  # found by fuzzing
        nm.figures.draw_certificate(certificate, {"pixels": X}, y, tmp_path)


def test_biases_are_told_from_weights_behind_inputs_by_name():
    class Sum(nn.Sequential):
        def forward(self, left, right):
            return super().forward(left + right)

    model = Sum(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    answer = nm.analyse(model, {"left": IMAGES, "right": -2 * IMAGES})
    assert [blocker.bias for blocker in answer.blockers] == ["2.bias"]
    assert answer.ignoring_biases().order == 2


@pytest.mark.parametrize(
    "first",
    [nn.Conv2d(1, 2, 3), nn.Linear(6, 2), nn.Flatten(), nn.Embedding(3, 2), nn.MaxPool2d(2)],
    ids=lambda layer: type(layer).__name__,
)
def test_a_net_of_one_tensor_says_what_the_data_hold_beside_it(first):
    net = nn.Sequential(first, nn.Flatten(), nn.Linear(4, 2))
    data = {"image": torch.zeros(8, 1, 6, 6), "idx": torch.arange(8), "label": torch.arange(8) % 2}
    with pytest.raises(nm.DataError, match=r"one tensor.* 'image', 'idx'\. Leave out"):
        nm.measure(net, [data])
