from places import data
from webs import anyone, waveforms, web

__all__ = ["anyone", "data", "waveforms", "web"]
