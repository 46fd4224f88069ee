"""Milliseconds of each part of a training step: `python benchmarks/step_parts.py [--length 64]`."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import TypeVar

import torch

from pdftime.config import preset
from pdftime.data.batches import generator_for
from pdftime.model.layers import pool_tokens
from pdftime.model.network import PDFTime, mean_over_tokens
from pdftime.training.loop import NORM_RATE, start
from pdftime.training.losses import total_loss

N_CLASSES, BATCH_SIZE, N_STEPS, N_WARM = 5, 16, 60, 10
Made = TypeVar("Made")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=64)
    length = parser.parse_args().length
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    settings = preset("network")
    network = PDFTime(settings.model, 1, length, N_CLASSES, generator_for(0, "weights")).train()
    optimizer = start(network, BATCH_SIZE, settings.training, seed=0).optimizer
    x, y, weight = torch.randn(BATCH_SIZE, 1, length), torch.arange(BATCH_SIZE) % N_CLASSES, torch.ones(BATCH_SIZE)
    dropout, parameters = generator_for(0, "dropout"), list(network.parameters())
    seconds: dict[str, list[float]] = {}

    def timed(part: str, function: Callable[[], Made]) -> Made:
        began = time.perf_counter()
        made = function()
        seconds.setdefault(part, []).append(time.perf_counter() - began)
        return made

    def encoded(tokens: torch.Tensor) -> torch.Tensor:
        pooled, _ = pool_tokens(tokens, None, network.pool_stride)
        return mean_over_tokens(network.norm(network.encoder(pooled, None, dropout)), None)

    for _ in range(N_WARM + N_STEPS):
        optimizer.zero_grad()
        series = timed("frequency mask", lambda: network.spectrum(x).transpose(1, 2).contiguous())
        tokens, _, moments = timed("embedding, forwards", lambda series=series: network.embedding(series, None, True))
        features = tokens.detach().requires_grad_()
        z = timed("encoder, forwards", lambda features=features: encoded(features))
        leaf = z.detach().requires_grad_()
        losses = timed(
            "head and loss, forwards",
            lambda leaf=leaf: total_loss(network.head(leaf), network.head.levels, y, weight, settings.training),
        )
        timed("head and loss, backwards", losses.total.backward)
        timed("encoder, backwards", lambda z=z, leaf=leaf: z.backward(leaf.grad))
        timed("embedding and mask, backwards", lambda t=tokens, features=features: t.backward(features.grad))
        timed("clipping", lambda: torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True))
        timed("AdamW", optimizer.step)
        timed("running averages", lambda moments=moments: network.update_norms_(moments, NORM_RATE))
        timed(
            "prototypes",
            lambda z=z: network.head.update_(network.head.statistics(z.detach(), y, weight), 0.99, 0.25),
        )
    medians = {part: 1000 * statistics.median(each[N_WARM:]) for part, each in seconds.items()}
    for part, value in medians.items():
        print(f"{part:32s}{value:8.2f} ms")
    print(f"{'together':32s}{sum(medians.values()):8.2f} ms")


if __name__ == "__main__":
    main()
