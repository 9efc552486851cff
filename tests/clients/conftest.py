from places import data
from webs import anyone, held, waveforms, web

__all__ = ["anyone", "data", "held", "waveforms", "web"]
