"""`paddle.audio`: spectra of signals, and files of sound in the WAV format."""

from dy2st.audio import features, functional
from dy2st.audio.wave_files import info, load, save
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = ["features", "functional", "info", "load", "save"]
