"""What the examples of models do with plain Python: search, decode, suppress, act; and the game of two players."""

import itertools

import numpy as np
import pytest

import dy2st as paddle


@pytest.fixture(scope="module")
def seq2seq(example):
    return example("seq2seq")


@pytest.fixture(scope="module")
def yolo(example):
    return example("yolo")


def likelihood(model, source, symbols, start):
    """Return the log-likelihood of `symbols`, as the decoder gives it where it is told each of them."""
    fed = paddle.to_tensor([[start, *symbols[:-1]]])
    scores = paddle.nn.functional.log_softmax(model(source, fed), axis=-1)[0]
    return sum(float(scores[place, symbol]) for place, symbol in enumerate(symbols))


def test_a_beam_as_wide_as_all_sentences_finds_the_likeliest(seq2seq):
    paddle.seed(4)
    model, source = seq2seq.Seq2Seq(6), paddle.to_tensor([[3, 1]])
    ends = seq2seq.END
    sentences = [[ends], *([a, b] for a, b in itertools.product(range(seq2seq.SYMBOLS), repeat=2) if a != ends)]
    best = max(likelihood(model, source, s, seq2seq.START) for s in sentences)
    found, score = model.search(source, seq2seq.SYMBOLS, 2)
    assert float(score) == pytest.approx(best, rel=1e-5)
    symbols = found.tolist()[:1] if found.tolist()[0] == ends else found.tolist()
    assert likelihood(model, source, symbols, seq2seq.START) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("width", [1, 3])
def test_the_beam_search_is_the_same_eager_and_static(seq2seq, width):
    paddle.seed(4)
    model = seq2seq.Seq2Seq(8)
    search = paddle.jit.to_static(model.search, full_graph=True)
    for digits in ([3, 1, 4], [1, 5, 9, 2, 6]):
        eager, static = (f(paddle.to_tensor([digits]), width, 6) for f in (model.search, search))
        assert static[0].tolist() == eager[0].tolist()
        assert float(static[1]) == pytest.approx(float(eager[1]), rel=1e-5)


def test_greedy_decoding_is_the_same_eager_and_static(example):
    module = example("translation")
    paddle.seed(2)
    model = module.Translator(8, 2, 1)
    model.eval()
    translate = paddle.jit.to_static(model.translate, full_graph=True)
    for shape in ((3, 4), (2, 6)):
        source = paddle.randint(0, 10, shape)
        assert translate(source, 7).tolist() == model.translate(source, 7).tolist()
    assert len(translate.program_cache) == 1


def test_suppression_keeps_the_surest_of_boxes_that_overlap(yolo):
    said = np.zeros((1, 4, 4, 8), "float32")
    said[..., 0] = -9.0
    said[0, 1, 1], said[0, 1, 2], said[0, 3, 3] = (
        [3, 3, 0, 0, 0, 9, 0, 0],
        [2, -3, 0, 0, 0, 0, 9, 0],
        [1, 0, 0, -3, -3, 0, 0, 9],
    )
    answer = paddle.to_tensor(said)
    find = paddle.jit.to_static(lambda picture: yolo.detect(lambda _: answer, picture), full_graph=True)
    for detect in (lambda picture: yolo.detect(lambda _: answer, picture), find):
        boxes, confidence, classes = detect(paddle.zeros([3, 32, 32]))
        assert classes.tolist() == [0, 2]
        assert confidence.tolist() == pytest.approx([1 / (1 + np.exp(-3)), 1 / (1 + np.exp(-1))])
        assert boxes.shape == [2, 4]


def test_nothing_is_found_where_the_detector_is_unsure(yolo):
    find = paddle.jit.to_static(lambda p: yolo.detect(lambda _: paddle.zeros([1, 4, 4, 8]), p, 0.6), full_graph=True)
    for detect in (lambda p: yolo.detect(lambda _: paddle.zeros([1, 4, 4, 8]), p, 0.6), find):
        assert [part.shape for part in detect(paddle.zeros([3, 32, 32]))] == [[0, 4], [0], [0]]


def test_an_episode_is_the_same_eager_and_static(example):
    module = example("reinforce")
    paddle.seed(0)
    policy = module.Policy(4)
    played = []
    for play in (module.play, paddle.jit.to_static(module.play, full_graph=True)):
        paddle.seed(5)
        played.append(play(policy, 3, 30))
    for eager, static in zip(*played, strict=True):
        np.testing.assert_allclose(static.numpy(), eager.numpy(), rtol=1e-5)


def test_an_episode_ends_when_all_have_fallen(example):
    module = example("reinforce")
    _, standing = module.play(lambda state: paddle.to_tensor([[-99.0, 0.0]]).expand([4, 2]), 4, 100)
    assert 3 < standing.shape[0] < 30
    assert standing[-1].sum() > 0


@pytest.mark.slow
def test_the_players_move_the_points_to_the_circle(example):
    gan = example("gan")
    before = gan.distance(gan.train(0)[0])
    game, losses = gan.train(300)
    assert gan.distance(game) < before / 3
    assert all(np.isfinite(losses).flatten())


def test_neighbours_of_a_word_share_its_subject(example):
    word2vec = example("word2vec")
    model, _ = word2vec.train(150)
    assert set(word2vec.nearest(model, "boat", 3)) <= set(word2vec.SUBJECTS[0])
