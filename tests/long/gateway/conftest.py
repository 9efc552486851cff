from places import data

__all__ = ["data"]
