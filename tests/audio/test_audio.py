"""Spectra of signals: the figures are those of PaddlePaddle 3.3.1."""

import io

import numpy as np
import pytest

import dy2st as paddle
from dy2st.audio import features, functional
from dy2st.errors import FileFormatError

WAVE = np.sin(np.arange(800) * 0.3).astype("float32")[None]

FIGURES = {
    "mel": [6.6, 36.5501, 549.6387, [1.5, 25.0819]],
    "hz": [1410.2386, 200.0, 602.7094],
    "bank": [0.0, 0.0013, 0.0019, 0.0006, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    "bank of norm 2": [1.3863, 1.769, 2.1115, 2.5474, 3.0509, 3.6574],
    "Spectrogram": [
        6.6227,
        0.0121,
        0.0239,
        0.035,
        0.0449,
        0.0535,
        0.0605,
        0.0656,
        0.0687,
        0.0697,
        0.0685,
        0.0653,
        0.0601,
        0.053,
    ],
    "MelSpectrogram": [
        1.1594,
        0.1387,
        0.1387,
        0.1388,
        0.1388,
        0.1388,
        0.1388,
        0.1387,
        0.1387,
        0.1387,
        0.1387,
        0.1388,
        0.1881,
        1.994,
    ],
    "LogMelSpectrogram": [
        0.6424,
        -8.5789,
        -8.5777,
        -8.5763,
        -8.5754,
        -8.5755,
        -8.5764,
        -8.5777,
        -8.5789,
        -8.5794,
        -8.5789,
        -8.5776,
        -7.2551,
        2.9972,
    ],
    "MFCC": [
        -42.472,
        -138.6188,
        -139.3583,
        -140.4077,
        -141.2924,
        -141.2749,
        -140.3687,
        -139.3252,
        -138.6019,
        -138.3615,
        -138.6379,
        -139.39,
        -62.3571,
        39.7775,
    ],
}


def near(found, wanted):
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=2e-4, atol=2e-4)


def test_scales_of_pitch():
    f = functional
    near([f.hz_to_mel(440.0), f.hz_to_mel(4400.0), f.hz_to_mel(440.0, True)], FIGURES["mel"][:3])
    near(f.hz_to_mel(paddle.to_tensor([100.0, 2000.0])).numpy(), FIGURES["mel"][3])
    near([f.mel_to_hz(20.0), f.mel_to_hz(3.0), f.mel_to_hz(700.0, True)], FIGURES["hz"])
    near(f.mel_to_hz(paddle.to_tensor([3.0, 20.0])).numpy(), FIGURES["hz"][1::-1])
    near(f.hz_to_mel(paddle.to_tensor(440.0), True).numpy(), FIGURES["mel"][2])
    near(f.mel_to_hz(paddle.to_tensor(700.0), True).numpy(), FIGURES["hz"][2])
    near(f.mel_frequencies(5, 50.0, 8000.0).numpy(), [50.0, 791.594, 1733.0178, 3723.4585, 7999.998])
    assert f.fft_frequencies(16000, 8).tolist() == [0, 2000, 4000, 6000, 8000]


def test_filters_and_decibels():
    f = functional
    bank = f.compute_fbank_matrix(16000, 64, 6)
    near(bank.numpy().ravel()[:14], FIGURES["bank"])
    near(f.compute_fbank_matrix(16000, 64, 6, norm=2.0, htk=True).sum(1).numpy(), FIGURES["bank of norm 2"])
    near(f.power_to_db(paddle.to_tensor([1e-12, 0.5, 10.0])).numpy(), [-70.0, -3.0103, 10.0])
    near(f.create_dct(3, 5).numpy()[1], [0.4472, 0.3717, -0.1954])
    near(f.create_dct(3, 5, None).numpy()[0], [2.0, 1.9021, 1.618])
    with pytest.raises(ValueError, match="amin and ref_value are positive"):
        f.power_to_db(paddle.ones([2]), amin=0)
    with pytest.raises(ValueError, match="norm is 'ortho' or None"):
        f.create_dct(3, 5, "other")


@pytest.mark.parametrize("kind", ["Spectrogram", "MelSpectrogram", "LogMelSpectrogram", "MFCC"])
def test_spectra(kind):
    layers = {
        "Spectrogram": lambda: features.Spectrogram(64, 32),
        "MelSpectrogram": lambda: features.MelSpectrogram(16000, 128, 64, n_mels=8),
        "LogMelSpectrogram": lambda: features.LogMelSpectrogram(16000, 128, 64, n_mels=8),
        "MFCC": lambda: features.MFCC(16000, 5, 128, 64, n_mels=8),
    }
    layer, x = layers[kind](), paddle.to_tensor(WAVE, stop_gradient=False)
    eager, static = layer(x), paddle.jit.to_static(layers[kind](), full_graph=True)(x)
    np.testing.assert_allclose(eager.numpy(), static.numpy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(eager.numpy().ravel()[:14], FIGURES[kind], rtol=2e-4, atol=2e-4)
    eager.sum().backward()
    assert x.grad.shape == [1, 800]
    with pytest.raises(ValueError, match="n_mfcc is at most n_mels"):
        features.MFCC(n_mfcc=9, n_mels=8)
    with pytest.raises(ValueError, match="power must be positive"):
        features.Spectrogram(power=0)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "triang", "cosine", "bohman", "nuttall",
                                  "gaussian", "exponential", "kaiser", "tukey", "general_gaussian"])  # fmt: skip
def test_windows(name):
    import scipy.signal.windows as windows

    options = {"gaussian": (7.0,), "exponential": (None, 2.0), "kaiser": (5.0,), "tukey": (0.4,),
               "general_gaussian": (1.5, 3.0)}.get(name, ())  # fmt: skip
    for length, periodic in ((7, True), (6, False), (1, False)):
        wanted = getattr(windows, name)(length, *options, sym=not periodic)
        near(functional.get_window((name, *options) if options else name, length, periodic).numpy(), wanted)


def test_unknown_windows():
    assert functional.get_window("rectangular", 3).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="there is no window 'round'"):
        functional.get_window("round", 3)
    with pytest.raises(ValueError, match="win_length must be positive"):
        functional.get_window("hann", 0)


def test_sound_in_files(tmp_path):
    path, wave = str(tmp_path / "a.wav"), paddle.to_tensor(WAVE)
    paddle.audio.save(path, wave, 8000)
    found, rate = paddle.audio.load(path)
    np.testing.assert_allclose(found.numpy(), WAVE, atol=1e-4)
    said = paddle.audio.info(path)
    assert (rate, said.sample_rate, said.num_samples, said.num_channels, said.bits_per_sample) == (
        8000,
        8000,
        800,
        1,
        16,
    )
    part, _ = paddle.audio.load(path, 10, 20, normalize=False, channels_first=False)
    assert (part.shape, part.dtype.name) == ([20, 1], "int16")
    with pytest.raises(ValueError, match="two axes in 16 bits"):
        paddle.audio.save(path, wave[0], 8000)


@pytest.mark.parametrize("use", [paddle.audio.load, paddle.audio.info])
def test_files_that_are_no_sound(tmp_path, use):
    path = tmp_path / "a.wav"
    paddle.audio.save(str(path), paddle.to_tensor(WAVE), 8000)
    whole = path.read_bytes()
    for data in (
        b"",
        whole[:20],
        whole[:30],
        b"text" * 9,
        whole[:20] + b"\7" + whole[21:],
        whole[:34] + b"\0\0" + whole[36:],
    ):
        path.write_bytes(data)
        with pytest.raises(FileFormatError, match=r"a.wav: it is no WAV file that can be read: \w"):
            use(str(path))
    with pytest.raises(FileFormatError, match="the sound: it is no WAV file"):
        use(io.BytesIO(b"RIFF"))
    path.write_bytes(whole[:34] + b"\x18\0" + whole[36:])
    with pytest.raises(FileFormatError, match="reads samples of 16 bits, not of 24"):
        paddle.audio.load(str(path))
    path.write_bytes(whole[:-1])
    with pytest.raises(FileFormatError, match="the file is damaged"):
        paddle.audio.load(str(path))
