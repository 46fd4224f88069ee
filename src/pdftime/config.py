"""Settings: what can be chosen, declared once, checked at once; presets, of which one is the default."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Real
from typing import Any, ClassVar, TypeVar

from pdftime.errors import ConfigError

Config = TypeVar("Config", bound="_Checked")


class _Checked:
    """A frozen dataclass whose fields are brought to their type and range as `RULES` says."""

    RULES: ClassVar[dict[str, _Rule]]

    def __post_init__(self) -> None:
        for name, rule in self.RULES.items():
            object.__setattr__(self, name, rule(name, getattr(self, name)))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    @classmethod
    def from_json(cls: type[Config], state: Mapping[str, Any]) -> Config:
        expected = {each.name for each in fields(cls)}  # type: ignore[arg-type]
        if not isinstance(state, Mapping) or set(state) != expected:
            raise ConfigError(f"Stored settings are {state!r:.300}; expected the fields {sorted(expected)}.")
        return cls(**state)


@dataclass(frozen=True)
class _Rule:
    """Brings a value to its kind, or says what was expected."""

    kind: str
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    optional: bool = False

    def __call__(self, name: str, value: Any) -> Any:
        if value is None and self.optional:
            return None
        try:
            if self.kind == "choice" and value in self.choices:
                return value
            if self.kind == "flag" and value in (True, False):
                return bool(value)
            if self.kind in ("whole", "number") and _is_number(value):
                number = operator.index(value) if self.kind == "whole" else float(value)
                if self.low <= number <= self.high:
                    return number
            if self.kind in ("wholes", "numbers"):
                items = list(value) if hasattr(value, "__iter__") and not isinstance(value, (str, bytes)) else [value]
                each = _Rule(self.kind[:-1], self.low, self.high)
                if 1 <= len(items) <= 8:
                    return tuple(each(name, item) for item in items)
        except (TypeError, ValueError):
            pass
        raise ConfigError(f"{name} is {value!r}; expected {self.expected()}.")

    def expected(self) -> str:
        if self.kind == "choice":
            text = "one of " + ", ".join(repr(choice) for choice in self.choices)
        elif self.kind == "flag":
            text = "True or False"
        else:
            words = {
                "whole": "a whole number",
                "number": "a number",
                "wholes": "one to eight whole numbers",
                "numbers": "one to eight numbers",
            }
            text = f"{words[self.kind]} from {self.low:g} to {self.high:g}"
        return text + (" or None" if self.optional else "")


def _is_number(value: Any) -> bool:
    """Whether it is a number by itself; text that reads as one, and True, are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _whole(low: int, high: int, *, optional: bool = False) -> _Rule:
    return _Rule("whole", low, high, optional=optional)


def _number(low: float, high: float, *, optional: bool = False) -> _Rule:
    return _Rule("number", low, high, optional=optional)


def _choice(*choices: str) -> _Rule:
    return _Rule("choice", choices=choices)


_FLAG = _Rule("flag")


@dataclass(frozen=True)
class PrepareConfig(_Checked):
    """How series become network input."""

    scaling: str = "train"
    """'train': z-score per channel by the training cases; 'series': each series by itself; 'none'."""
    lengths: str = "resample"
    """Series of unequal length: 'resample' to the longest training series, or 'pad' to it with a mask."""

    RULES: ClassVar = {"scaling": _choice("train", "series", "none"), "lengths": _choice("resample", "pad")}


@dataclass(frozen=True)
class ModelConfig(_Checked):
    """The network. Its defaults are ours; the paper's are the preset `paper`."""

    views: str = "network"
    """What looks at a series: the learned 'network', a fixed 'bank' of convolutions, or 'both'."""
    frequency_mask: bool = True
    """One learnable gain per channel and frequency before the embedding (section 4.2)."""
    embedding: str = "inception"
    """'inception': residual layers of parallel convolutions; 'linear': one linear map per time point."""
    n_inception_layers: int = 3
    """L_I, the number of residual Inception layers."""
    kernel_sizes: tuple[int, ...] = (9, 19, 39)
    """Spans of the parallel convolutions in time points; odd, so that the length stays."""
    branch_width: int = 16
    """Features that each branch of an Inception layer makes."""
    d_model: int = 64
    """Features per token, and of a prototype."""
    least_timepoints: int | None = None
    """Between Inception layers neighbours are averaged in pairs while so many time points are left; None: never."""
    max_tokens: int | None = 64
    """Tokens that the encoder sees at most; longer series are averaged down to it. None: one per time point."""
    encoder: str = "attention"
    """'attention': every token sees every other; 'window': only near ones; 'none': a purely local model."""
    n_layers: int = 1
    """L_e, the number of encoder layers."""
    n_heads: int = 4
    """Attention heads; must divide d_model."""
    feed_forward: int = 2
    """Width of the feed-forward part, in multiples of d_model."""
    window: int = 8
    """With encoder='window': how many tokens to each side one sees."""
    pooling: str = "mean"
    """'mean' over tokens, which makes evidence per token exact; 'token': a learned class token."""
    dropout: float = 0.2
    """Share of features dropped in the encoder while training; attention weights are never dropped."""
    head: str = "prototypes"
    """'prototypes': the paper's; 'linear': a linear map to class scores, for comparison."""
    n_prototypes: tuple[int, ...] = (2, 3)
    """Prototypes per class at each level; the last level decides."""
    temperature: float = 0.2
    """T of the log-sum-exp over a class's prototypes."""
    assignment_temperature: float = 0.1
    """Temperature of the soft assignment of cases to prototypes; small keeps prototypes apart."""
    prototype_update: str = "ema"
    """'ema': prototypes follow averages, never gradients; 'gradient': they are trained like weights."""

    RULES: ClassVar = {
        "views": _choice("network", "bank", "both"),
        "frequency_mask": _FLAG,
        "embedding": _choice("inception", "linear"),
        "n_inception_layers": _whole(1, 16),
        "kernel_sizes": _Rule("wholes", 1, 255),
        "branch_width": _whole(1, 1024),
        "d_model": _whole(2, 4096),
        "least_timepoints": _whole(1, 1 << 20, optional=True),
        "max_tokens": _whole(1, 1 << 20, optional=True),
        "encoder": _choice("attention", "window", "none"),
        "n_layers": _whole(1, 24),
        "n_heads": _whole(1, 64),
        "feed_forward": _whole(1, 16),
        "window": _whole(1, 1 << 20),
        "pooling": _choice("mean", "token"),
        "dropout": _number(0.0, 0.9),
        "head": _choice("prototypes", "linear"),
        "n_prototypes": _Rule("wholes", 1, 64),
        "temperature": _number(1e-3, 10.0),
        "assignment_temperature": _number(1e-3, 10.0),
        "prototype_update": _choice("ema", "gradient"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        even = [size for size in self.kernel_sizes if size % 2 == 0]
        if even:
            raise ConfigError(f"kernel_sizes holds {even}; expected odd sizes, so that the length stays.")
        if len(self.n_prototypes) > 4:
            raise ConfigError(f"n_prototypes has {len(self.n_prototypes)} levels; expected 1 to 4.")
        if self.encoder != "none" and self.d_model % self.n_heads:
            raise ConfigError(f"d_model is {self.d_model} and n_heads {self.n_heads}; the heads must divide it.")
        if self.encoder != "attention" and self.pooling == "token":
            raise ConfigError(
                f"pooling is 'token' and encoder {self.encoder!r}; expected encoder='attention', "
                "without which a class token sees little or nothing."
            )
        if self.views == "both" and self.head == "linear":
            raise ConfigError("views is 'both' and head 'linear'; expected head='prototypes', which a bank has too.")


@dataclass(frozen=True)
class BankConfig(_Checked):
    """The bank of fixed convolutions and its prototypes, found in closed form."""

    n_groups: int = 32
    """Groups of eight competing kernels at each dilation, on the series and on its first difference."""
    n_biases: int = 2
    """Biases that each pooled kernel is compared with at each dilation; more of them in short series."""
    max_prototypes: int = 5
    """Prototypes that a class may have; their number is chosen by leave-one-out likelihood."""

    RULES: ClassVar = {
        "n_groups": _whole(1, 512),
        "n_biases": _whole(1, 64),
        "max_prototypes": _whole(1, 64),
    }


@dataclass(frozen=True)
class TrainConfig(_Checked):
    """The training run."""

    max_epochs: int | None = None
    """Passes over the training cases at most; None: as many as make n_steps steps, from 20 to 300."""
    n_steps: int = 500
    """Steps to plan for where max_epochs is None, of all folds together."""
    patience: int = 30
    """Epochs without a better validation loss before training stops."""
    batch_size: int = 16
    """Cases per step."""
    learning_rate: float = 3e-3
    """The highest rate of AdamW."""
    schedule: str = "cosine"
    """After the warm-up: 'cosine' down to zero at the last planned epoch, or 'constant'."""
    warmup: float = 0.1
    """Share of the planned steps over which the rate rises from zero."""
    weight_decay: float = 0.01
    """AdamW's; for matrices and kernels only."""
    clip_norm: float = 1.0
    """Longest gradient that a step may use."""
    label_smoothing: float = 0.0
    """Share of a label that is spread over all classes."""
    level_weights: tuple[float, ...] = (1.0,)
    """w_l, from the first level to the last; the last one repeats."""
    diversity_weight: float = 0.01
    """lambda of the diversity term in the reported loss; teaches only prototypes trained by gradient."""
    diversity_step: float = 0.25
    """How far prototypes of a class are pushed apart at each update; 0 is the paper as written."""
    momentum: float | None = None
    """A fixed prototype momentum; None: Algorithm 1."""
    gamma_a: float = 0.99
    """The lowest momentum of Algorithm 1."""
    gamma_b: float = 0.999
    """The momentum that Algorithm 1 ends with."""
    warm_epochs: int = 3
    """T_warm: epochs with prototypes frozen."""
    active_epochs: int = 10
    """T_active: epochs over which the momentum falls to gamma_a."""
    momentum_tau: float = 30.0
    """tau: epochs in which the momentum comes 63% of the way to gamma_b."""
    validation_fraction: float | None = None
    """Share of the training cases kept for validation; None: chosen by the number of cases."""
    n_folds: int = 1
    """Networks of a member, each judged by another part of the cases, which it has not seen; one from 1000 on."""

    RULES: ClassVar = {
        "max_epochs": _whole(1, 1_000_000, optional=True),
        "n_steps": _whole(1, 100_000_000),
        "patience": _whole(1, 1_000_000),
        "batch_size": _whole(1, 1_000_000),
        "learning_rate": _number(1e-8, 10.0),
        "schedule": _choice("cosine", "constant"),
        "warmup": _number(0.0, 0.9),
        "weight_decay": _number(0.0, 10.0),
        "clip_norm": _number(1e-6, 1e6),
        "label_smoothing": _number(0.0, 0.9),
        "level_weights": _Rule("numbers", 0.0, 100.0),
        "diversity_weight": _number(0.0, 100.0),
        "diversity_step": _number(0.0, 1.0),
        "momentum": _number(0.0, 1.0, optional=True),
        "gamma_a": _number(0.0, 1.0),
        "gamma_b": _number(0.0, 1.0),
        "warm_epochs": _whole(0, 1_000_000),
        "active_epochs": _whole(1, 1_000_000),
        "momentum_tau": _number(1e-3, 1e6),
        "validation_fraction": _number(0.0, 0.9, optional=True),
        "n_folds": _whole(1, 100),
    }


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen for one model."""

    prepare: PrepareConfig = field(default_factory=PrepareConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    bank: BankConfig = field(default_factory=BankConfig)
    training: TrainConfig = field(default_factory=TrainConfig)

    def but(self, **changes: Any) -> Settings:
        """The same settings with some fields changed, each known by its name alone.

        >>> from pdftime.config import preset
        >>> preset("paper").but(d_model=64, patience=5).model.d_model
        64
        """
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        homes = {each.name: part for part, config in parts.items() for each in fields(config)}
        unknown = sorted(set(changes) - set(homes))
        if unknown:
            raise ConfigError(f"Unknown settings {unknown}; expected any of {sorted(homes)}.")
        for part, config in parts.items():
            own = {name: value for name, value in changes.items() if homes[name] == part}
            parts[part] = replace(config, **own)
        return Settings(**parts)

    def to_json(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name).to_json() for part in fields(self)}

    def in_use(self) -> dict[str, Any]:
        """The settings that change the result: without those of a view that does not look."""
        state = self.to_json()
        if self.model.views == "bank":
            del state["training"]
            state["model"] = {"views": "bank"}
        elif self.model.views == "network":
            del state["bank"]
        return state

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Settings:
        kinds: dict[str, Any] = {
            "prepare": PrepareConfig,
            "model": ModelConfig,
            "bank": BankConfig,
            "training": TrainConfig,
        }
        if not isinstance(state, Mapping) or set(state) != set(kinds):
            raise ConfigError(f"Stored settings are {state!r:.300}; expected {sorted(kinds)}.")
        return cls(**{name: kind.from_json(state[name]) for name, kind in kinds.items()})


FAST = Settings(model=ModelConfig(views="bank"))
PRESETS = {
    "default": FAST,  # why: docs/recipe.md
    "fast": FAST,
    "network": Settings(),
    "strong": Settings(
        model=ModelConfig(views="both", least_timepoints=64), training=TrainConfig(n_steps=1000, n_folds=4)
    ),
    # Appendix B and section 4.4, to the letter; what the paper leaves open is as in docs/how-it-works.md.
    "paper": Settings(
        model=ModelConfig(
            kernel_sizes=(9, 19, 39),
            branch_width=32,
            d_model=128,
            max_tokens=None,
            n_layers=2,
            n_heads=8,
            feed_forward=4,
            dropout=0.2,
            n_prototypes=(2, 3),
            temperature=0.1,
            assignment_temperature=1.0,
        ),
        training=TrainConfig(
            max_epochs=150,
            patience=20,
            batch_size=16,
            learning_rate=1e-3,
            schedule="constant",
            warmup=0.0,
            weight_decay=0.0,
            diversity_weight=0.01,
            diversity_step=0.0,
            gamma_a=0.99,
            gamma_b=0.999,
            warm_epochs=3,
            active_epochs=10,
            momentum_tau=30.0,
        ),
    ),
}


def preset(name: str) -> Settings:
    """The settings of this name."""
    if name not in PRESETS:
        raise ConfigError(f"Unknown preset {name!r}; expected one of {sorted(PRESETS)}.")
    return PRESETS[name]


def chosen(name: str, changes: Mapping[str, Any]) -> Settings:
    """The preset of this name with some settings changed; one that would change nothing is refused.

    >>> chosen("network", {"d_model": 32}).model.d_model
    32
    """
    settings = preset(name).but(**changes)
    used = {setting for part in settings.in_use().values() for setting in part}
    idle = sorted(set(changes) - used)
    if idle:
        raise ConfigError(f"{', '.join(idle)}: {no_effect(settings, name)}")
    return settings


def no_effect(settings: Settings, name: str) -> str:
    """Why something has no effect on a model with one view, and what to do, in a sentence."""
    views, other = ("bank", "network") if settings.model.views == "bank" else ("network", "bank")
    presets = {"bank": "'fast' or 'strong'", "network": "'network' or 'strong'"}[other]
    return (
        f"no effect with preset {name!r}, which looks at series through the {views} alone; "
        f"expected a preset with the {other}: {presets}."
    )


def value_of(text: str) -> Any:
    """A setting's value from its text: JSON where it is JSON, a list where it has commas, else the text.

    >>> value_of("0.1"), value_of("2,3"), value_of("null"), value_of("window")
    (0.1, [2, 3], None, 'window')
    """
    python = {"True": True, "False": False, "None": None}
    if text in python:
        return python[text]
    for each in (text, f"[{text}]") if "," in text else (text,):
        try:
            return json.loads(each)
        except ValueError:
            continue
    return text
