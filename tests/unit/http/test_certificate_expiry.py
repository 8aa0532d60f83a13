"""The expiry of the certificates in use, in /metrics."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from reserver.http.tls import Expiries
from reserver.http.tls_files import TlsFiles
from reserver.webhook.certificates import LIFETIME, CertificateMaker
from tests.builders import NOW

SOON, LATER = (datetime(2030, month, 1, tzinfo=UTC) for month in (1, 6))


def exposed(expiries: Expiries) -> dict[str, float]:
    (family,) = expiries.measured()
    return {sample.labels["file"]: sample.value for sample in family.samples}


def certificate(ends: datetime) -> bytes:
    return trustme.CA().issue_cert("127.0.0.1", not_after=ends).cert_chain_pems[0].bytes()


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    files = TlsFiles(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")
    files.certificate.write_bytes(certificate(LATER))
    assert files.client_ca
    files.client_ca.write_bytes(certificate(LATER) + certificate(SOON))
    return files


def test_each_file_is_named_once_with_the_first_of_its_certificates(files: TlsFiles) -> None:
    again = files._replace(client_ca=None)
    assert exposed(Expiries((files, again, None))) == {
        str(files.certificate): LATER.timestamp(),
        str(files.client_ca): SOON.timestamp(),
    }


def test_a_file_that_is_replaced_tells_of_its_new_certificate(files: TlsFiles) -> None:
    expiries = Expiries((files,))
    exposed(expiries)
    files.certificate.write_bytes(certificate(SOON))
    assert exposed(expiries)[str(files.certificate)] == SOON.timestamp()


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nno\n", None])
def test_a_file_that_cannot_be_read_is_left_out(files: TlsFiles, content: bytes | None) -> None:
    if content is None:
        files.certificate.unlink()
    else:
        files.certificate.write_bytes(content)
    assert list(exposed(Expiries((files,)))) == [str(files.client_ca)]


def test_the_certificate_that_reserver_made_is_told_of_once_it_serves() -> None:
    expiries = Expiries((None,))
    assert exposed(expiries) == {}
    expiries.keep("secret/webhooks", CertificateMaker(["reserver.example"]).make(NOW).certificate)
    (moment,) = exposed(expiries).values()
    assert moment == pytest.approx(NOW + LIFETIME / timedelta(seconds=1))
