"""Where checkpoints outlive processes: objects under URLs, with a log, manifests and state in them.

Nothing here decides what is kept or what may be deleted; everything here says truthfully whether
something is stored, is not, or may be.
"""
