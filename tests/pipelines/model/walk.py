"""Random walks through a world: each seed gives the same actions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.pipelines.model.rejected import NUMBERS
from tests.pipelines.model.world import CHECKPOINTS, Run, SilentError, World, in_world

LENGTH = 60
Weights: TypeAlias = "dict[Callable[[Walker], Any], int]"


class Walker:
    """Draws what happens next in a world."""

    def __init__(self, world: World, draw: random.Random, weights: Weights) -> None:
        self.world = world
        self.draw = draw
        self.weights = weights
        self.log: list[str] = []

    def run(self) -> Run | None:
        alive = [run for run in self.world.runs if run.is_idle]
        return self.draw.choice(alive) if alive else None

    def checkpoint(self) -> str:
        return self.draw.choice(CHECKPOINTS)

    def step(self) -> None:
        chosen = self.draw.choices(list(self.weights), list(self.weights.values()))[0]
        self.log.append(chosen.__name__)
        chosen(self)


def append(walker: Walker) -> None:
    walker.world.append(walker.draw.randrange(3), walker.draw.randint(1, 4))


def start(walker: Walker) -> None:
    starting = walker.draw.choice(("earliest", "table"))
    on_lost = walker.draw.choice(("stop", "skip"))
    walker.world.start(walker.checkpoint(), starting, on_lost)


def batch(walker: Walker) -> None:
    if run := walker.run():
        walker.world.batch(run, walker.draw.randint(1, 5))


def cycle(walker: Walker) -> None:
    """A whole run, as a timer starts it."""
    run = walker.world.start(walker.checkpoint(), "table")
    for _ in range(walker.draw.randint(1, 3)):
        walker.world.batch(run, walker.draw.randint(1, 5))
    walker.world.stop(run)


def killed(walker: Walker) -> None:
    walker.world.steps.kill_at = walker.draw.randrange(8)
    walker.draw.choice((start, batch, batch))(walker)
    walker.world.steps.kill_at = -1


def cut_off(walker: Walker) -> None:
    """A process is killed between the commit of a batch and its look at the commits before it.

    Another one may have taken its checkpoint, or continued its table, shortly before.
    """
    world, draw = walker.world, walker.draw
    if run := walker.run():
        for before in draw.choice(((), (), (_forget_history,), (cycle, _forget_history))):
            before(walker)

        def taken() -> None:
            world.freeze(run.checkpoint)
            other = world.start(run.checkpoint, "table")
            world.batch(other, 5)
            world.stop(other)

        if draw.random() < 0.3:
            world.steps.meanwhile_at, world.steps.meanwhile = draw.randrange(3), taken
        after = draw.choice((append, append, cycle, restore_table))
        world.batch_cut_off(run, draw.randint(1, 5), lambda: after(walker))
        world.steps.meanwhile_at, world.steps.meanwhile = -1, None


def overtaken(walker: Walker) -> None:
    """Something happens between two steps of a start or a batch."""
    steps = walker.world.steps
    what = walker.draw.choice((start, batch, cycle, cycle, killed, append))
    steps.meanwhile_at = walker.draw.randrange(6)
    steps.meanwhile = lambda: what(walker)
    walker.draw.choice((start, batch, batch))(walker)
    steps.meanwhile_at, steps.meanwhile = -1, None


def stop(walker: Walker) -> None:
    if run := walker.run():
        walker.world.stop(run)


def restart(walker: Walker) -> None:
    if run := walker.run():
        walker.world.restart(run)


def beat(walker: Walker) -> None:
    if run := walker.run():
        walker.world.beat(run)


def freeze(walker: Walker) -> None:
    walker.world.freeze(walker.checkpoint())


def copy(walker: Walker) -> None:
    of, to = walker.draw.sample(CHECKPOINTS, 2)
    if not walker.world.running_on(to):
        walker.world.copy_checkpoint(of, to)


def forget(walker: Walker) -> None:
    name = walker.checkpoint()
    if not walker.world.running_on(name):
        walker.world.forget_checkpoint(name)


def back_up(walker: Walker) -> None:
    walker.world.back_up_checkpoint(walker.checkpoint())


def restore(walker: Walker) -> None:
    walker.world.restore_checkpoint(walker.checkpoint())


def restore_table(walker: Walker) -> None:
    walker.world.restore_table(walker.draw.randrange(20))


def recreate_topic(walker: Walker) -> None:
    walker.world.recreate_topic(walker.draw.randrange(8))


def retention(walker: Walker) -> None:
    walker.world.retention(walker.draw.randint(1, 4))


def expect(walker: Walker) -> None:
    walker.world.expect(walker.draw.choice(NUMBERS))


WEIGHTS: Weights = {
    append: 20,
    start: 14,
    batch: 24,
    cycle: 8,
    killed: 8,
    overtaken: 8,
    stop: 6,
    restart: 3,
    beat: 4,
    freeze: 3,
    copy: 5,
    forget: 2,
    back_up: 4,
    restore: 4,
    restore_table: 3,
    recreate_topic: 1,
    retention: 2,
    lambda walker: walker.world.back_up_target(): 4,
    lambda walker: walker.world.restore_target(): 3,
    lambda walker: walker.world.add_partition(): 2,
    lambda walker: walker.world.forget_history(): 1,
    lambda walker: walker.world.recreate_target(): 1,
    lambda walker: walker.world.renew(): 2,
}


CHANGES: Weights = WEIGHTS | {expect: 10, killed: 16}
"""Steps among which the user often expects something else of the rows."""


def _forget_history(walker: Walker) -> None:
    walker.world.forget_history()


def _forget_writers(walker: Walker) -> None:
    walker.world.forget_writers()


CUT_OFF: Weights = WEIGHTS | {cut_off: 16, overtaken: 16, _forget_history: 6, _forget_writers: 3}
"""Steps among which runs are often killed between a commit and their look at others."""


def walk(
    seed: int, kind: str, delivery: str, length: int = LENGTH, weights: Weights = WEIGHTS
) -> World:
    """Take so many steps. Raises SilentError, with the steps, where rows were lost or doubled."""
    with in_world(kind, delivery) as world:
        walker = Walker(world, random.Random(seed), weights)
        try:
            for _ in range(length):
                walker.step()
        except SilentError as error:
            trail = " ".join(walker.log[-12:])
            raise SilentError(f"seed {seed}, {kind}, {delivery}: {error} after {trail}") from error
        return world


def stopped_start(kind: str, at: int) -> World:
    """Stop a start on a new topic before its step `at`, until another run takes its checkpoint."""
    with in_world(kind, "exactly-once") as world:
        world.append(0, 2)
        run = world.start("a")
        world.batch(run, 5)
        world.stop(run)
        world.recreate_topic(5)

        def another() -> None:
            world.freeze("a")
            run = world.start("a", "table", "skip")
            for _ in range(2):
                world.batch(run, 3)
            world.stop(run)

        world.steps.meanwhile_at, world.steps.meanwhile = at, another
        late = world.start("a", "table", "skip")
        world.steps.meanwhile_at, world.steps.meanwhile = -1, None
        for _ in range(2):
            world.batch(late, 5)
        return world
