"""The driver's REST API: queries about a job, commands to it, and its metrics.

Nothing here knows the driver. A page is asked of a view, an order is handed to it, and both answer
at once; so no client, however slow or however many, can hold a job up.
"""
