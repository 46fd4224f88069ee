"""PDFTimeClassifier: the scikit-learn face."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_feature_names, check_is_fitted
from torch import nn

from pdftime.config import Settings, chosen, no_effect
from pdftime.data.labels import check_labels, codes_of, encode
from pdftime.data.series import SeriesSet, check_series
from pdftime.errors import ConfigError, DataError
from pdftime.explain.evidence import explain
from pdftime.explain.explanation import Explanation
from pdftime.explain.gallery import ModelExplanation, explain_model
from pdftime.explain.report import MAX_CASES, Names, Progress, Report, check_place, write_report
from pdftime.fitted import FittedModel
from pdftime.fitting import FitOptions, LabelledCases, fit_model
from pdftime.storage import read_model, write_model
from pdftime.training.loop import Callback

NEGLIGIBLE = 1e-30  # a weight below this share of the largest is zero in single precision


class Keywords:
    """The constructor that the faces for scikit-learn, aeon and sktime share; it only keeps what it is given."""

    def __init__(
        self,
        *,
        preset: str = "default",
        d_model: int | None = None,
        n_layers: int | None = None,
        n_prototypes: int | Sequence[int] | None = None,
        encoder: str | None = None,
        scaling: str | None = None,
        lengths: str | None = None,
        max_epochs: int | None = None,
        patience: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        validation_fraction: float | None = None,
        settings: Mapping[str, Any] | None = None,
        backbone: nn.Module | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        max_time_s: float | None = None,
        random_state: Any = 0,
        n_members: int = 1,
        n_threads: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        callbacks: Sequence[Callback] = (),
        keep_prototypes: int | None = None,
        verbose: int = 0,
    ) -> None:
        """Settings stand in `pdftime.config`; `settings` takes any of them by name, `backbone` a torch module.

        With `keep_prototypes=n` a copy of the prototypes is kept every n epochs, for `explain_model`.
        """
        self.preset = preset
        self.d_model = d_model
        self.n_layers = n_layers
        self.n_prototypes = n_prototypes
        self.encoder = encoder
        self.scaling = scaling
        self.lengths = lengths
        self.max_epochs = max_epochs
        self.patience = patience
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.settings = settings
        self.backbone = backbone
        self.class_weight = class_weight
        self.max_time_s = max_time_s
        self.random_state = random_state
        self.n_members = n_members
        self.n_threads = n_threads
        self.checkpoint = checkpoint
        self.resume = resume
        self.callbacks = callbacks
        self.keep_prototypes = keep_prototypes
        self.verbose = verbose
        super().__init__()


class PDFTimeClassifier(Keywords, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A time series classifier whose decisions rest on prototypes.

    `X` is `(n_cases, n_channels, n_timepoints)`, `(n_cases, n_timepoints)` for one channel, or a list of
    `(n_channels, n_timepoints)` arrays for unequal lengths; NaN is a missing value. Presets are `default`, which is
    `fast` (a bank of fixed convolutions), `network` (a learned network), `strong` (both) and `paper`. Of every
    setting that is None, the preset's value is used; one that the preset has no use for is refused.

    >>> from pdftime import PDFTimeClassifier
    >>> from pdftime.data.synthetic import make_problem
    >>> problem = make_problem("frequency", n_cases=40)
    >>> model = PDFTimeClassifier().fit(problem.train.X, problem.train.y)
    >>> model.predict_proba(problem.fresh.X).shape[1] == len(model.classes_)
    True
    """

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> PDFTimeClassifier:
        """Train on labelled series. `X_val`, `y_val` are for early stopping; without them a part of X is kept."""
        if y is None:
            raise DataError("This classifier requires y to be passed, but the target y is None.")
        settings = self._resolve_settings()
        options = self._options()
        cases = check_series(X, y)
        _check_feature_names(self, X, reset=True)
        weight = _weights(sample_weight, len(cases))
        rows = np.flatnonzero(weight > NEGLIGIBLE)
        data, classes = self._labelled(_only(cases, rows), weight[rows])
        validation = None
        if (X_val is None) != (y_val is None):
            raise DataError("X_val and y_val belong together; pass both or none.")
        if X_val is not None:
            kept = check_series(X_val, y_val)
            codes = codes_of(kept.y, classes, "y_val")  # type: ignore[arg-type]
            validation = LabelledCases(kept, codes, np.ones(len(kept)))
        with _threads(self.n_threads):
            model = fit_model(data, classes, settings, options, validation)
        self._adopt(_renumbered(model, rows))
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """(n_cases, n_classes): probabilities in the order of `classes_`."""
        cases = self._cases(X)
        with _threads(self.n_threads):
            return self.model_.probabilities(cases)

    def predict(self, X: Any) -> NDArray[Any]:
        """(n_cases,) labels, of the kind they were given in."""
        codes = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def transform(self, X: Any) -> NDArray[np.float32]:
        """(n_cases, d_model) embeddings, those of several members side by side."""
        cases = self._cases(X)
        with _threads(self.n_threads):
            return self.model_.embeddings(cases)

    def explain(self, X: Any, target: Any = None, contrast: Any = None) -> list[Explanation]:
        """Why each series is predicted as it is: prototypes, training series, moments, and why not another class.

        Explained is the class `target`, or the predicted one, against `contrast`, or the most probable other one.
        """
        cases = self._cases(X)
        with _threads(self.n_threads):
            return explain(self.model_, cases, target, contrast)

    def explain_model(self, X: Any = None, y: Any = None) -> ModelExplanation:
        """What the model as a whole has learned: its prototypes and their company, its mistakes, its calibration.

        Mistakes and calibration are those on `X` with labels `y`, or, without, as they were kept from training.
        """
        if (X is None) != (y is None):
            raise DataError("X and y belong together; pass both or none.")
        check_is_fitted(self)
        cases = None
        if X is not None:
            cases = self._cases(X)
            cases = replace(cases, y=check_labels(y, len(cases)))
        with _threads(self.n_threads):
            return explain_model(self.model_, cases)

    def report(
        self,
        X: Any,
        y: Any = None,
        path: str | os.PathLike[str] = "report.html",
        *,
        chosen: Sequence[int] | None = None,
        max_cases: int = MAX_CASES,
        names: Names | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Write predictions with their reasons and checks as one HTML file that opens anywhere, without a network.

        Labels `y` say which predictions are right. The cases at the places `chosen` are shown, or `max_cases` that
        are spread evenly over X; `names` are those of model and data on the page.
        """
        check_place(path)
        cases = self._cases(X)
        if y is not None:
            cases = replace(cases, y=check_labels(y, len(cases)))
        with _threads(self.n_threads):
            return write_report(
                path, self.model_, cases, chosen=chosen, max_cases=max_cases, names=names, progress=progress
            )

    @property
    def prototypes_(self) -> list[NDArray[np.float32]]:
        """Per level (n_networks, n_classes, k, d_model) unit vectors; those of banks before those of networks.

        Banks choose how many each class gets, so several of them follow each other as (1, n_classes, k, d) arrays.
        """
        check_is_fitted(self)
        found: list[NDArray[np.float32]] = []
        networks = []
        for member in self.model_.members:
            levels = [level.detach().numpy() for level in member.network.head.levels]
            if member.view == "bank":
                found += [level[None] for level in levels]
            else:
                networks.append(levels)
        return found + [np.stack(each) for each in zip(*networks, strict=True)]

    @property
    def history_(self) -> list[dict[str, Any]]:
        """A record per epoch, the members' one after the other: loss terms, validation, momentum, seconds."""
        check_is_fitted(self)
        return [
            {"member": number, **record}
            for number, member in enumerate(self.model_.members)
            for record in member.history
        ]

    @property
    def metrics_(self) -> dict[str, Any]:
        """What was measured on validation cases."""
        check_is_fitted(self)
        return self.model_.metrics

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; an older one of that name is replaced entirely or not at all."""
        check_is_fitted(self)
        write_model(path, self.model_)

    @classmethod
    def load(cls, path: str | os.PathLike[str], backbone: nn.Module | None = None) -> PDFTimeClassifier:
        """The classifier in a model file, ready to predict."""
        model = read_model(path, backbone)
        flat = {name: value for part in model.settings.in_use().values() for name, value in part.items()}
        views = {member.view for member in model.members}
        n_members = model.metrics.get("n_members", len(model.members) // len(views))  # older files do not say
        loaded = cls(settings=flat, backbone=backbone, n_members=n_members)
        loaded._adopt(model)
        return loaded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _adopt(self, model: FittedModel) -> None:
        self.model_ = model
        self.classes_ = model.classes
        self.n_features_in_ = model.preparation.n_channels * model.preparation.n_timepoints

    def _resolve_settings(self) -> Settings:
        """The preset, changed by `settings`, changed by the keywords that are not None."""
        given = {} if self.settings is None else self.settings
        _expect("settings", given, isinstance(given, Mapping), "a mapping or None")
        keywords = {name: getattr(self, name) for name in _SETTINGS if getattr(self, name) is not None}
        settings = chosen(str(self.preset), {**{str(name): value for name, value in given.items()}, **keywords})
        idle = [name for name in _OF_TRAINING if getattr(self, name)]
        if settings.model.views == "bank" and idle:
            raise ConfigError(f"{', '.join(idle)}: {no_effect(settings, str(self.preset))}")
        return settings

    def _options(self) -> FitOptions:
        limit, threads, callbacks, backbone = self.max_time_s, self.n_threads, self.callbacks, self.backbone
        _expect("n_members", self.n_members, _is_count(self.n_members), "a whole number from 1")
        _expect("n_threads", threads, threads is None or _is_count(threads), "a whole number from 1 or None")
        positive = isinstance(limit, Real) and limit > 0
        _expect("max_time_s", limit, limit is None or positive, "a positive number of seconds or None")
        functions = isinstance(callbacks, Sequence) and all(callable(each) for each in callbacks)
        _expect("callbacks", callbacks, functions, "a list of functions")
        every = self.keep_prototypes
        _expect("keep_prototypes", every, every is None or _is_count(every), "a whole number from 1 or None")
        module = backbone is None or isinstance(backbone, nn.Module)
        _expect("backbone", backbone, module, "a torch.nn.Module or None")
        return FitOptions(
            seed=_seed(self.random_state),
            n_members=int(self.n_members),
            max_time_s=self.max_time_s,
            backbone=self.backbone,
            checkpoint=self.checkpoint,
            resume=self.resume,
            callbacks=self.callbacks,
            progress=bool(self.verbose),
            keep_prototypes=self.keep_prototypes,
        )

    def _labelled(self, cases: SeriesSet, weight: NDArray[np.float64]) -> tuple[LabelledCases, NDArray[Any]]:
        """Cases with codes and weights, those of their classes included; and the classes."""
        classes, codes = encode(cases.y)  # type: ignore[arg-type]
        if len(classes) < 2:
            raise DataError(
                f"y holds one class, {classes.tolist()[0]!r}, in {len(cases)} case(s); "
                "a classifier needs at least 2 classes."
            )
        if self.class_weight is not None:
            weight = weight * _class_weights(self.class_weight, classes, codes)[codes]
        return LabelledCases(cases, codes, weight / weight.mean()), classes

    def _cases(self, X: Any) -> SeriesSet:
        """Series to predict on, checked against what the model was trained on."""
        check_is_fitted(self)
        cases = check_series(X)
        _check_feature_names(self, X, reset=False)
        if getattr(X, "ndim", 3) == 2 and self.model_.preparation.equal_length:
            n_features = cases.n_timepoints
            if n_features != self.n_features_in_:
                raise DataError(
                    f"X has {n_features} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input: series of the length that it was trained on."
                )
        self.model_.preparation.check(cases)
        return cases


_SETTINGS = (
    "d_model",
    "n_layers",
    "n_prototypes",
    "encoder",
    "scaling",
    "lengths",
    "max_epochs",
    "patience",
    "batch_size",
    "learning_rate",
    "validation_fraction",
)


_OF_TRAINING = ("backbone", "checkpoint", "callbacks", "keep_prototypes")


def load(path: str | os.PathLike[str], backbone: nn.Module | None = None) -> PDFTimeClassifier:
    """The classifier in a model file, ready to predict."""
    return PDFTimeClassifier.load(path, backbone)


def _expect(name: str, value: Any, good: bool, expected: str) -> None:
    if not good:
        raise ConfigError(f"{name} is {value!r:.100}; expected {expected}.")


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 1


def _weights(sample_weight: Any, n_cases: int) -> NDArray[np.float64]:
    """(n_cases,) weights of cases as shares of the largest."""
    if sample_weight is None:
        return np.ones(n_cases)
    try:
        weight = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight is not made of numbers: {error}.") from error
    if weight.shape != (n_cases,):
        raise DataError(f"sample_weight has shape {weight.shape}; expected one weight per case, shape ({n_cases},).")
    if not np.isfinite(weight).all() or (weight < 0.0).any():
        raise DataError("sample_weight holds NaN, infinite or negative values; expected numbers from 0.")
    if not weight.any():
        raise DataError("sample_weight is zero for every case; at least one weight must be non-zero.")
    shares: NDArray[np.float64] = weight / weight.max()
    return shares


def _only(cases: SeriesSet, rows: NDArray[np.int64]) -> SeriesSet:
    """The cases that count, as if there had been no others: the longest of them sets the length."""
    if len(rows) == len(cases):
        return cases
    return cases.take(rows).cut()


def _renumbered(model: FittedModel, rows: NDArray[np.int64]) -> FittedModel:
    """The model with its training series numbered as they stood before `_only`."""
    exemplars, review = model.exemplars, model.review
    if exemplars is not None:
        model = replace(model, exemplars=exemplars._replace(numbers=rows[exemplars.numbers]))
    if review is not None and review.source != "validation":
        mistakes = np.column_stack([rows[review.mistakes[:, 0]], review.mistakes[:, 1:]])
        model = replace(model, review=review._replace(mistakes=mistakes))
    return model


def _seed(random_state: Any) -> int:
    """A whole number from what scikit-learn allows; 0 is a seed like any other, None a fresh one."""
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return int(random_state)
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise ConfigError(
            f"random_state is {random_state!r:.100}; expected a whole number, None or a numpy RandomState."
        ) from error


def _class_weights(
    class_weight: str | Mapping[Any, float], classes: NDArray[Any], codes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(n_classes,) positive weights; 'balanced' makes every class weigh the same."""
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ConfigError(f"class_weight is {class_weight!r}; expected 'balanced', a mapping or None.")
        return np.asarray(compute_class_weight("balanced", classes=np.arange(len(classes)), y=codes))
    _expect("class_weight", class_weight, isinstance(class_weight, Mapping), "'balanced', a mapping or None")
    labels = classes.tolist()
    given = [class_weight.get(label, 1.0) for label in labels]
    numbers = set(class_weight) <= set(labels) and all(isinstance(weight, Real) for weight in given)
    weights = np.array(given if numbers else [0.0], np.float64)
    if not (np.isfinite(weights).all() and weights.min() > NEGLIGIBLE * weights.max()):
        raise ConfigError(
            f"class_weight is {dict(class_weight)!r:.300}; expected positive numbers for classes among {labels}."
        )
    return weights


@contextmanager
def _threads(n_threads: int | None) -> Iterator[None]:
    """torch uses so many threads meanwhile; None leaves them as they are."""
    if n_threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
