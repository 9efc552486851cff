"""Control of running writers: signals to end, changed facility files, notifications to systemd."""
