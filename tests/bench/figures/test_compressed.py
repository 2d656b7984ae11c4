from bench.figures.compressed import CODECS, SIZES, CompressedProduce


def test_every_codec_and_size_has_a_goal_relative_to_kafka() -> None:
    goals = [measure for measure in CompressedProduce.measures if measure.ratio is not None]
    assert len(goals) == len(CODECS) * len(SIZES)
    assert len({measure.name for measure in CompressedProduce.measures}) == 2 * len(goals)
