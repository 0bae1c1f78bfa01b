"""Models over HTTP: a server, an ASGI application and a client.

``mercer serve tagger.mercer`` serves model files over HTTP, with a web page. `app` returns the same application for
your own server. `Client` sends requests from Python. The server needs an extra: ``pip install 'mercer[serve]'``; the
client has no dependencies.
"""

from mercer.serve.app import App, Security, app
from mercer.serve.client import Client, ServerError
from mercer.serve.errors import MissingExtraError
from mercer.serve.forms import Limits

__all__ = ["App", "Client", "Limits", "MissingExtraError", "Security", "ServerError", "app"]
