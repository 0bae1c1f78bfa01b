"""Models over HTTP: a server, an ASGI application and a client.

``mercer serve tagger.mercer`` serves model files to programs and, with a page, to people. `app` makes the same
application for a server of your own, `Client` asks one from Python. The libraries of the server come with the extra:
``pip install 'mercer[serve]'``; the client needs none.
"""

from mercer.serve.app import App, Security, app
from mercer.serve.client import Client, ServerError
from mercer.serve.errors import MissingExtraError
from mercer.serve.forms import Limits

__all__ = ["App", "Client", "Limits", "MissingExtraError", "Security", "ServerError", "app"]
