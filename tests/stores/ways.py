"""Ways to a server that are worse than the one of a test."""

import socket
import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress


@contextmanager
def slow_way(to_port: int, *, bytes_per_second: int) -> Generator[int]:
    """Forward connections to a port of this machine at so many bytes a second, either way."""

    class Way(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", to_port)) as inner:
                back = threading.Thread(target=forward, args=(inner, self.request), daemon=True)
                back.start()
                forward(self.request, inner)
                inner.shutdown(socket.SHUT_RDWR)
                back.join()

    def forward(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(16_384):
                stand.wait(len(piece) / bytes_per_second)
                target.sendall(piece)

    class Ways(socketserver.ThreadingTCPServer):
        daemon_threads = True

    stand = threading.Event()
    with Ways(("127.0.0.1", 0), Way) as ways:
        threading.Thread(target=ways.serve_forever, daemon=True).start()
        yield ways.server_address[1]
        stand.set()
        ways.shutdown()
