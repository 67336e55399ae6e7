"""The nets of the zoo: classification nets of torchvision, timm and transformers, by name.

Weights are random and nothing is downloaded. Images are small where the net allows.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

CLASSES = 10


@dataclass(frozen=True)
class Entry:
    """One net of the zoo.

    Attributes
    ----------
    library : str
        The package that it comes from.
    name : str
        Its name there.
    family : str
        What it is built of: "plain" and "residual" convolutions, "attention", "hybrid" of
        convolutions and attention, "mixer" of patches, "language" for token nets.
    size : int
        Side of its images, or length of its sequences of tokens.
    options : dict
        Further arguments of its constructor or its configuration.
    """

    library: str
    name: str
    family: str
    size: int
    options: dict[str, Any]

    def build(self) -> nn.Module:
        """The net in evaluation mode, with random weights from a fixed seed."""
        _import_torchvision()
        torch.manual_seed(0)
        return _BUILDERS[self.library](self).eval()

    def inputs(self, n: int) -> Tensor:
        """A batch of n random images of three channels, or of n sequences of token numbers."""
        torch.manual_seed(1)
        if self.family == "language":
            tokens = torch.randint(3, _WORDS, (n, self.size))
            # Nets with a decoder read the scores off at the end of the sentence, others ignore it.
            end = {"Bart": 2, "T5": 1}.get(self.name)
            if end is not None:
                tokens[:, -1] = end
            return tokens
        return torch.rand(n, 3, self.size, self.size)


_WORDS = 5000
"""Tokens of the language nets: the embedding is a look-up, whose size says nothing here."""
_SMALL = {
    "vocab_size": _WORDS,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "intermediate_size": 1536,
}
"""Language nets of about 10 million parameters: six layers look like the twelve of a base net."""
_DECODER = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def _import_torchvision() -> None:
    """Import torchvision if it is installed, also without its C part; the others import it too.

    Beside a torch of another build the C part (boxes, not classification) does not load, and its
    names cannot get the descriptions that the package gives them at its import.
    """
    register = torch.library.register_fake
    torch.library.register_fake = lambda name, *args, **options: (
        (lambda function: function)
        if str(name).startswith("torchvision::")
        else register(name, *args, **options)
    )
    try:
        with suppress(ModuleNotFoundError):
            import torchvision  # noqa: F401
    finally:
        torch.library.register_fake = register


def _from_torchvision(entry: Entry) -> nn.Module:
    import torchvision

    return torchvision.models.get_model(
        entry.name, weights=None, num_classes=CLASSES, **entry.options
    )


def _from_timm(entry: Entry) -> nn.Module:
    import timm

    return timm.create_model(entry.name, num_classes=CLASSES, **entry.options)


def _from_transformers(entry: Entry) -> nn.Module:
    import transformers

    config = getattr(transformers, f"{entry.name}Config")(num_labels=CLASSES, **entry.options)
    suffix = "Sequence" if entry.family == "language" else "Image"
    return getattr(transformers, f"{entry.name}For{suffix}Classification")(config)


_BUILDERS: dict[str, Callable[[Entry], nn.Module]] = {
    "torchvision": _from_torchvision,
    "timm": _from_timm,
    "transformers": _from_transformers,
}


def _entries(library: str, rows: str, **options: dict[str, Any]) -> list[Entry]:
    """Rows "name family size"; options by name."""
    found = []
    for row in rows.strip().splitlines():
        name, family, size = row.split()
        found.append(Entry(library, name, family, int(size), options.get(name, {})))
    return found


ZOO = {
    entry.name: entry
    for entry in [
        *_entries(
            "torchvision",
            """
            alexnet plain 128
            vgg11 plain 128
            vgg16_bn plain 128
            squeezenet1_1 plain 128
            googlenet plain 128
            inception_v3 plain 128
            resnet18 residual 128
            resnet50 residual 128
            resnext50_32x4d residual 128
            wide_resnet50_2 residual 128
            densenet121 residual 128
            shufflenet_v2_x1_0 residual 128
            mobilenet_v2 residual 128
            mobilenet_v3_small residual 128
            mnasnet1_0 residual 128
            efficientnet_b0 residual 128
            efficientnet_v2_s residual 128
            regnet_x_400mf residual 128
            regnet_y_400mf residual 128
            convnext_tiny residual 128
            vit_b_32 attention 128
            swin_t attention 128
            swin_v2_t attention 128
            maxvit_t hybrid 224
            """,
            googlenet={"aux_logits": False, "init_weights": False},
            inception_v3={"aux_logits": False, "init_weights": False},
            vit_b_32={"image_size": 128},
        ),
        *_entries(
            "timm",
            """
            resnet26d residual 128
            resnetv2_50 residual 128
            seresnet50 residual 128
            ecaresnet26t residual 128
            skresnet18 residual 128
            res2net50d residual 128
            resnest14d residual 128
            nf_resnet50 residual 128
            dla34 residual 128
            hrnet_w18_small residual 128
            cspresnet50 residual 128
            darknet53 residual 128
            ghostnet_100 residual 128
            mixnet_s residual 128
            rexnet_100 residual 128
            lcnet_050 plain 128
            mobileone_s0 plain 128
            repvgg_a0 plain 128
            selecsls42 residual 128
            xception41 residual 128
            inception_resnet_v2 residual 128
            edgenext_xx_small hybrid 128
            convnextv2_atto residual 128
            vit_tiny_patch16_224 attention 224
            vit_base_patch16_224 attention 128
            deit3_small_patch16_224 attention 128
            cait_xxs24_224 attention 128
            xcit_nano_12_p16_224 attention 128
            beit_base_patch16_224 attention 224
            eva02_tiny_patch14_224 attention 126
            swin_tiny_patch4_window7_224 attention 224
            pvt_v2_b0 attention 128
            twins_svt_small attention 128
            crossvit_tiny_240 attention 240
            convit_tiny attention 224
            tnt_s_legacy_patch16_224 attention 224
            volo_d1_224 attention 224
            nest_tiny attention 224
            davit_tiny attention 128
            coat_tiny hybrid 128
            levit_128s hybrid 224
            mobilevit_xxs hybrid 128
            mobilevitv2_050 hybrid 128
            efficientformer_l1 hybrid 224
            fastvit_t8 hybrid 128
            coatnet_nano_rw_224 hybrid 224
            tiny_vit_5m_224 hybrid 128
            visformer_tiny hybrid 224
            poolformer_s12 mixer 128
            mixer_s32_224 mixer 224
            resmlp_12_224 mixer 224
            gmlp_s16_224 mixer 224
            """,
            vit_base_patch16_224={"img_size": 128},
            deit3_small_patch16_224={"img_size": 128},
            cait_xxs24_224={"img_size": 128},
            eva02_tiny_patch14_224={"img_size": 126},
            coat_tiny={"img_size": 128},
        ),
        *_entries(
            "transformers",
            """
            Bert language 32
            DistilBert language 32
            Roberta language 32
            Albert language 32
            Electra language 32
            DebertaV2 language 32
            MobileBert language 32
            FNet language 32
            XLNet language 32
            GPT2 language 32
            OPT language 32
            GPTNeoX language 32
            Llama language 32
            Qwen2 language 32
            Bart language 32
            T5 language 32
            ViT attention 128
            Swin attention 224
            ConvNext residual 128
            """,
            Bert={"vocab_size": _WORDS},
            DistilBert={"vocab_size": _WORDS, "dim": 384, "n_heads": 6, "hidden_dim": 1536},
            Roberta=_SMALL,
            Albert=_SMALL,
            Electra=_SMALL,
            DebertaV2=_SMALL,
            MobileBert={"vocab_size": _WORDS},
            FNet={k: v for k, v in _SMALL.items() if k != "num_attention_heads"},
            XLNet={
                "vocab_size": _WORDS,
                "d_model": 384,
                "n_layer": 6,
                "n_head": 6,
                "d_inner": 1536,
            },
            GPT2={"vocab_size": _WORDS, "n_embd": 384, "n_layer": 6, "n_head": 6, **_DECODER},
            OPT={
                "vocab_size": _WORDS,
                "hidden_size": 384,
                "word_embed_proj_dim": 384,
                "num_hidden_layers": 6,
                "num_attention_heads": 6,
                "ffn_dim": 1536,
                **_DECODER,
            },
            GPTNeoX={**_SMALL, **_DECODER},
            Llama={**_SMALL, **_DECODER},
            Qwen2={**_SMALL, "num_key_value_heads": 6, **_DECODER},
            Bart={
                "vocab_size": _WORDS,
                "d_model": 384,
                "encoder_layers": 3,
                "decoder_layers": 3,
                "encoder_attention_heads": 6,
                "decoder_attention_heads": 6,
                "encoder_ffn_dim": 1536,
                "decoder_ffn_dim": 1536,
            },
            T5={
                "vocab_size": _WORDS,
                "d_model": 384,
                "num_layers": 3,
                "num_heads": 6,
                "d_kv": 64,
                "d_ff": 1536,
                "decoder_start_token_id": 0,
            },
            ViT={"image_size": 128},
        ),
    ]
}
