"""Make the pictures of docs/costs.md: who moves where, for every norm.

    python docs/pictures.py

The same forty people and the same weights; only what a move costs differs. The last picture is that
of instances/tiny/spill-over.json.
"""

from pathlib import Path

import mipmech

HERE = Path(__file__).resolve().parent
WEIGHTS = (1.0, 0.6, 0.0)
# What a move costs, and how the picture is called.
COSTS = {
    "l2": ("l2: all features, the more a feature weighs the more", {}),
    "l1": ("l1: the feature that pays most", {"norm": "l1"}),
    "linf": ("linf: all features at once", {"norm": "linf"}),
    "matrix": (
        "a matrix: effort on verbal helps maths and essay",
        {"effort": [[1.0, -0.6, -0.5], [-0.6, 1.0, 0.0], [-0.5, 0.0, 1.0]]},
    ),
}


def sample(**costs: object) -> mipmech.Instance:
    """Forty people with three features, of which two are seen."""
    agents = mipmech.make_instance("gaussian-mixture", agents=40, rank=2, seed=4).agents
    return mipmech.Instance.from_arrays(
        agents, [1.0, 0.5, 1.0], visible=[0, 1], cost=1.6, features=["verbal", "maths", "essay"],
        **costs,
    )  # fmt: skip


def main() -> None:
    """All pictures."""
    for name, (title, costs) in COSTS.items():
        instance = sample(**costs)
        found = mipmech.best_threshold(instance, mipmech.Mechanism(WEIGHTS, 0.0))
        draw(found, f"costs-{name}", title)
    instance = mipmech.Instance.load(HERE.parent / "instances" / "tiny" / "spill-over.json")
    found = mipmech.best_threshold(instance, mipmech.Mechanism((1.0, 0.0), 0.0))
    draw(found, "costs-spill-over", "effort spills over: quality is x1, which is not seen")


def draw(found: mipmech.Recount, name: str, title: str) -> None:
    """A picture, small and the same bytes each time."""
    from mipmech.plots.rule import picture  # noqa: PLC0415  (matplotlib is slow to import)

    figure = picture(found, title)
    file = HERE / "images" / f"{name}.png"
    figure.savefig(file, dpi=80, metadata={"Software": None})
    print(f"{file.relative_to(HERE.parent)}: gain {float(found.gain):.4g}")


if __name__ == "__main__":
    main()
