from given_server import home, loadtest, site, there

__all__ = ["home", "loadtest", "site", "there"]
