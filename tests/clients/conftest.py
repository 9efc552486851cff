from webs import anyone, waveforms, web

__all__ = ["anyone", "waveforms", "web"]
