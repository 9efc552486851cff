from webs import anyone, held, waveforms, web

__all__ = ["anyone", "held", "waveforms", "web"]
