"""Draws docs/prototypes-apart.svg: how alike the prototypes of a class are while training, by assignment temperature.

python docs/make_prototype_figure.py
"""

from __future__ import annotations

from pathlib import Path

import torch

from pdftime import PDFTimeClassifier
from pdftime.data.synthetic import make_problem
from pdftime.training.loop import Run

EPOCHS = 60
WIDTH, HEIGHT, LEFT, TOP = 640, 340, 70, 30
CASES = {
    "assignment temperature 1.0, no diversity step (paper as written)": ("#D55E00", 1.0, 0.0),
    "assignment temperature 0.1, diversity step 0.25 (default)": ("#0072B2", 0.1, 0.25),
}


def alikeness(assignment_temperature: float, diversity_step: float) -> list[float]:
    """Per epoch the mean cosine between two prototypes of one class, at the deciding level."""
    seen: list[float] = []

    def note(run: Run) -> None:
        prototypes = run.network.head.levels[-1]
        cosines = prototypes @ prototypes.transpose(1, 2)
        off_diagonal = ~torch.eye(cosines.shape[-1], dtype=torch.bool)
        seen.append(float(cosines[:, off_diagonal].mean()))

    problem = make_problem("motifs")
    settings = {
        "assignment_temperature": assignment_temperature,
        "diversity_step": diversity_step,
        "validation_fraction": 0.0,
    }
    PDFTimeClassifier(preset="network", max_epochs=EPOCHS, settings=settings, callbacks=[note], n_threads=1).fit(
        problem.train, problem.train.y
    )
    return seen


def main() -> None:
    right, bottom = WIDTH - 20, HEIGHT - 95
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    ]
    for value in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = bottom - value * (bottom - TOP)
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for epoch in range(0, EPOCHS + 1, 10):
        x = LEFT + epoch / EPOCHS * (right - LEFT)
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{epoch}</text>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{bottom + 38}" text-anchor="middle">epoch</text>')
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text transform="translate(18 {middle}) rotate(-90)" text-anchor="middle">'
        "cosine between prototypes of a class</text>"
    )
    for row, (name, (colour, temperature, step)) in enumerate(CASES.items()):
        points = [
            f"{LEFT + (epoch + 1) / EPOCHS * (right - LEFT):.1f},{bottom - max(value, 0.0) * (bottom - TOP):.1f}"
            for epoch, value in enumerate(alikeness(temperature, step))
        ]
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        y = bottom + 62 + 20 * row
        parts.append(
            f'<line x1="{LEFT}" x2="{LEFT + 28}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="3"/>'
        )
        parts.append(f'<text x="{LEFT + 36}" y="{y}">{name}</text>')
    Path(__file__).with_name("prototypes-apart.svg").write_text("\n".join([*parts, "</svg>"]) + "\n")


if __name__ == "__main__":
    main()
