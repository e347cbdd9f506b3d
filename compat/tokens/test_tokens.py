"""Tokens of people, with PyJWT on the other side: it verifies those of the server, and signs those of an issuer."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from harness.cast import Person
from harness.server import Server

AUDIENCE = "bandstand-compat"


class Issuer:
    """An OpenID Connect issuer: a configuration document, a key set, and the keys behind it."""

    def __init__(self) -> None:
        self.rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.small = rsa.generate_private_key(public_exponent=65537, key_size=1024)
        self.ec = ec.generate_private_key(ec.SECP256R1())
        self.ed = ed25519.Ed25519PrivateKey.generate()
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(issuer.answer(self.path)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> dict[str, Any]:
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        keys = [
            RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True) | {"kid": "rs", "use": "sig"},
            RSAAlgorithm.to_jwk(self.rsa.public_key(), as_dict=True) | {"kid": "ps", "alg": "PS256"},
            RSAAlgorithm.to_jwk(self.small.public_key(), as_dict=True) | {"kid": "small", "alg": "RS256"},
            ECAlgorithm.to_jwk(self.ec.public_key(), as_dict=True) | {"kid": "ec"},
            OKPAlgorithm.to_jwk(self.ed.public_key(), as_dict=True) | {"kid": "ed"},
        ]
        return {"keys": keys}

    def token(self, key: Any, algorithm: str, name: str, **claims: Any) -> str:
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "account-1", "iat": now, "exp": now + 300}
        return jwt.encode(usual | claims, key, algorithm=algorithm, headers={"kid": name})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    yield issuer
    issuer.close()


async def profile(server: Server, token: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(f"{server.url}/api/v1/me/profile", headers={"authorization": f"Bearer {token}"})


async def test_pyjwt_verifies_a_token_of_the_server_by_its_published_keys(server: Server, ann: Person) -> None:
    async with httpx.AsyncClient() as client:
        reply = await client.post(f"{server.url}/api/v1/sign-in", headers={"x-api-key": ann.api_key})
    token = reply.json()["data"]["access_token"]
    keys = jwt.PyJWKClient(f"{server.url}/.well-known/jwks.json")
    key = await asyncio.to_thread(keys.get_signing_key_from_jwt, token)
    claims = jwt.decode(token, key, algorithms=["EdDSA"], audience="bandstand", issuer="bandstand")
    assert claims["sub"] == ann.id
    assert (await profile(server, token)).status_code == 200


async def test_tokens_that_pyjwt_signs_sign_in(tmp_path: Path, issuer: Issuer) -> None:
    server = Server(tmp_path, "--oidc-issuer", issuer.url, "--oidc-audience", AUDIENCE, "--oidc-create-users").start()
    try:
        for key, algorithm, name in [
            (issuer.rsa, "RS256", "rs"),
            (issuer.rsa, "PS256", "ps"),
            (issuer.ec, "ES256", "ec"),
            (issuer.ed, "EdDSA", "ed"),
        ]:
            reply = await profile(server, issuer.token(key, algorithm, name, preferred_username="Ana"))
            assert reply.status_code == 200, f"{algorithm}: {reply.text}"
            assert reply.json()["data"]["handle"] == "ana"

        forged = "band_u_" + "x" * 40
        for why, token in {
            "another algorithm of the key's kind": issuer.token(issuer.rsa, "PS256", "rs"),
            "RS256 by a key for PS256": issuer.token(issuer.rsa, "RS256", "ps"),
            "a key of 1024 bits": issuer.token(issuer.small, "RS256", "small"),
            "an unknown key": issuer.token(ed25519.Ed25519PrivateKey.generate(), "EdDSA", "nobody"),
            "a shared secret": issuer.token(forged, "HS256", "rs"),
            "another audience": issuer.token(issuer.rsa, "RS256", "rs", aud="other"),
            "expired": issuer.token(issuer.rsa, "RS256", "rs", exp=int(time.time()) - 61),
            "unsigned": issuer.token(None, "none", "rs"),
        }.items():
            assert (await profile(server, token)).status_code == 401, why

        links = await asyncio.to_thread(server.command, "user", "links")
        assert [(link["user"]["handle"], link["subject"]) for link in links["links"]] == [("ana", "account-1")]
    finally:
        server.close()
