"""`dppp demo`: a federation of hospitals in one process, told on a terminal or served as a page.

`command` runs the story, `log` tells it, `plot` draws it; `web` is `dppp demo --web`.
"""
