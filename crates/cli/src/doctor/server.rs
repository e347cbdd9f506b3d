//! Whether a server runs, whether one could, and whether somebody owns it.

use std::net::TcpListener;

use bandstand_server::admin::{About, Operation, Outcome};
use bandstand_store::{DataLock, StoreError};

use super::Findings;
use crate::admin::{AdminSocket, perform_alone};
use crate::settings::Settings;

/// Asks the running server about itself; `None` when none answers.
pub(super) async fn check_server(settings: &Settings, findings: &mut Findings) -> Option<About> {
    let asked = async {
        match AdminSocket::connect(settings).await? {
            Some(mut socket) => socket.about().await.map(Some),
            None => anyhow::Ok(None),
        }
    };
    match asked.await {
        Ok(Some(about)) => {
            judge(&about, findings);
            Some(about)
        }
        Ok(None) => {
            check_lock(settings, findings);
            None
        }
        Err(error) => {
            findings.fail(
                "server",
                format!("the admin socket does not answer: {error:#}"),
                "restart the server, or run this as its user",
            );
            None
        }
    }
}

fn judge(about: &About, findings: &mut Findings) {
    let ours = env!("CARGO_PKG_VERSION");
    let About { pid, version, url, status } = about;
    if status != "ready" {
        findings.fail(
            "server",
            format!("the server (pid {pid}) says: {status}"),
            if status == "draining" {
                "it is stopping; wait for its end"
            } else {
                "look at its log; free space on its disk"
            },
        );
    } else if version == ours {
        findings.ok("server", format!("runs as pid {pid} on {url}"));
    } else {
        findings.warn(
            "server",
            format!("runs as pid {pid} in version {version}; this program is {ours}"),
            "restart the server, so that both are the same version",
        );
    }
}

/// No server answers: then nobody must hold the data, either.
fn check_lock(settings: &Settings, findings: &mut Findings) {
    if !settings.data.is_dir() {
        return findings.ok("server", "no server runs");
    }
    match DataLock::acquire(&settings.data) {
        Ok(_released_at_once) => findings.ok("server", "no server runs"),
        Err(StoreError::Locked { holder, .. }) => findings.fail(
            "server",
            format!("another process holds the data ({holder}), and no admin socket answers"),
            "if it is starting or stopping, wait; if it hangs, end that process",
        ),
        Err(error) => findings.fail("server", error.to_string(), "run this as the server's user"),
    }
}

/// Whether the address could be listened on.
pub(super) fn check_listen(settings: &Settings, findings: &mut Findings) {
    let address = settings.listen;
    match TcpListener::bind(address) {
        Ok(_released_at_once) => findings.ok("listen", format!("{address} is free")),
        Err(error) => findings.fail(
            "listen",
            format!("cannot listen on {address}: {error}"),
            "stop what uses it (`ss -ltnp` shows it), or name another address with --listen",
        ),
    }
}

/// Whether there is somebody who may administer through the API.
pub(super) async fn check_owner(settings: &Settings, running: bool, findings: &mut Findings) {
    let outcome = if running {
        match AdminSocket::connect(settings).await {
            Ok(Some(mut socket)) => socket.perform(&Operation::ListUsers).await,
            Ok(None) => return,
            Err(error) => Err(error),
        }
    } else {
        perform_alone(settings, Operation::ListUsers).await
    };
    match outcome {
        Ok(Outcome::Users(users)) => match users.iter().find(|user| user.role == "admin") {
            Some(owner) => findings.ok("owner", format!("{} owns this server", owner.handle)),
            None => findings.fail(
                "owner",
                "nobody owns this server",
                "`bandstand up` creates the owner when it starts on an empty database",
            ),
        },
        Ok(_) => findings.fail(
            "owner",
            "the server answered something unexpected",
            "restart the server, so that both are the same version",
        ),
        Err(error) => {
            findings.fail("owner", format!("cannot list people: {error:#}"), "mend what the other checks found")
        }
    }
}
