"""Momentum and learning rate are functions of how far training has come, and of nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pdftime.config import TrainConfig, preset
from pdftime.training.schedules import learning_rate, prototype_momentum

PAPER = preset("paper").training
APPENDIX_C = preset("paper").but(gamma_a=0.97, gamma_b=0.997).training


# Worked out by hand from Algorithm 1 with T_warm = 3, T_active = 10 and tau = 30.
@pytest.mark.parametrize(
    ("epoch", "section_4", "appendix_c"),
    [
        (0, 1.0, 1.0),
        (2, 1.0, 1.0),
        (3, 1.0, 1.0),
        (4, 0.999, 0.997),
        (8, 0.995, 0.985),
        (12, 0.991, 0.973),
        (13, 0.99, 0.97),
        (14, 0.990295055, 0.970885165),
        (28, 0.993541224, 0.980623672),
        (43, 0.995689085, 0.987067255),
        (73, 0.997781982, 0.993345947),
        (149, 0.998903297, 0.996709890),
    ],
)
def test_momentum_is_that_of_algorithm_1(epoch: int, section_4: float, appendix_c: float) -> None:
    assert prototype_momentum(epoch, PAPER) == pytest.approx(section_4, abs=1e-8)
    assert prototype_momentum(epoch, APPENDIX_C) == pytest.approx(appendix_c, abs=1e-8)


def test_momentum_falls_while_active_and_rises_after() -> None:
    values = [prototype_momentum(epoch, PAPER) for epoch in range(400)]
    assert values[:4] == [1.0] * 4
    assert all(one > other for one, other in pairwise(values[3:14]))
    assert all(one < other for one, other in pairwise(values[13:201]))
    assert values[399] == pytest.approx(0.999, abs=1e-6)


@pytest.mark.parametrize("momentum", [0.0, 0.95, 0.999, 1.0])
def test_a_fixed_momentum_is_the_same_in_every_epoch(momentum: float) -> None:
    config = TrainConfig(momentum=momentum)
    assert {prototype_momentum(epoch, config) for epoch in (0, 3, 8, 100)} == {momentum}


def test_without_a_warm_up_prototypes_move_from_the_second_epoch_on() -> None:
    config = TrainConfig(warm_epochs=0, active_epochs=1, gamma_a=0.9, gamma_b=0.99)
    assert prototype_momentum(0, config) == 1.0
    assert prototype_momentum(1, config) == pytest.approx(0.9)


def test_the_learning_rate_rises_over_the_warm_up_and_falls_to_zero() -> None:
    config = TrainConfig(learning_rate=0.5, warmup=0.2, schedule="cosine")
    expected = {0.0: 0.0, 0.1: 0.25, 0.2: 0.5, 0.6: 0.25, 1.0: 0.0}
    for progress, rate in expected.items():
        assert learning_rate(progress, config) == pytest.approx(rate, abs=1e-12)
    falling = [learning_rate(0.2 + 0.8 * step / 50, config) for step in range(51)]
    assert all(one > other for one, other in pairwise(falling))


def test_a_constant_learning_rate_stays_after_the_warm_up() -> None:
    config = TrainConfig(learning_rate=0.5, warmup=0.5, schedule="constant")
    assert [learning_rate(progress, config) for progress in (0.25, 0.5, 0.75, 1.0)] == [0.25, 0.5, 0.5, 0.5]
    assert {learning_rate(progress, PAPER) for progress in (0.0, 0.001, 0.5, 1.0)} == {0.001}
