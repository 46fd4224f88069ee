"""Where the time of a training step goes.

python benchmarks/profile_step.py [--length 512] [--batch 64] [--preset default]
"""

from __future__ import annotations

import argparse

import torch
from torch.profiler import ProfilerActivity, profile

from pdftime.config import preset
from pdftime.data.batches import generator_for
from pdftime.model.network import PDFTime
from pdftime.training.loop import Examples, start, train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--preset", default="network")
    options = parser.parse_args()
    torch.set_num_threads(1)
    settings = preset(options.preset).but(batch_size=options.batch, max_epochs=1000, momentum=0.99)
    n_cases = 4 * options.batch
    x = torch.randn(n_cases, 1, options.length, generator=generator_for("series"))
    examples = Examples(x, None, torch.arange(n_cases) % 3, torch.ones(n_cases))
    run = start(
        PDFTime(settings.model, 1, options.length, 3, generator_for("weights")), n_cases, settings.training, 0
    )
    train(run, examples, callbacks=[lambda run: True])  # the first epoch warms up, the second is watched
    with profile(activities=[ProfilerActivity.CPU]) as watched:
        train(run, examples, callbacks=[lambda run: True])
    print(watched.key_averages().table(sort_by="self_cpu_time_total", row_limit=20, max_name_column_width=44))


if __name__ == "__main__":
    main()
