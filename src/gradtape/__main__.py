"""``python -m gradtape view SCRIPT.py``: run a script, and look at its tapes in a browser."""

if __name__ == "__main__":
    from gradtape.inspect.view import run

    run()
