//! The agents' processes.

use std::process::{Child, Command, Stdio};

use anyhow::Context;
use bandstand_wire::ids::IdentityId;

use super::agents::{PACE, Part, SLOW};
use crate::people::account::Credentials;

/// A registered agent: what its program needs.
pub(super) struct Seat {
    pub(super) part: Part,
    pub(super) id: IdentityId,
    pub(super) key: String,
}

/// Every process that runs. They end with the value.
#[derive(Default)]
pub(super) struct Crew {
    running: Vec<(Part, Child)>,
}

impl Crew {
    /// Starts an agent's program: this very binary, in a process of its own.
    pub(super) fn start(&mut self, server: &Credentials, seat: &Seat, pace_ms: u128, slow: bool) -> anyhow::Result<()> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args(["demo-agent", seat.part.name()]);
        command.env("BANDSTAND_URL", &server.url).env("BANDSTAND_KEY", &seat.key);
        command.env(PACE, pace_ms.to_string());
        if slow {
            command.env(SLOW, "1");
        }
        // The other end of its standard input is this process: whatever becomes of this one, that one ends.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot start an agent's process")?;
        self.running.push((seat.part, child));
        Ok(())
    }

    /// What `kill -9` does; answers the id of the process that is no more.
    pub(super) fn kill(&mut self, part: Part) -> anyhow::Result<u32> {
        let at = self.running.iter().position(|(running, _)| *running == part).context("that agent does not run")?;
        let (_, mut child) = self.running.remove(at);
        child.kill().context("cannot kill the agent's process")?;
        child.wait().context("cannot await the end of the agent's process")?;
        Ok(child.id())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        for (_, child) in &mut self.running {
            let _ = child.kill();
        }
        for (_, child) in &mut self.running {
            let _ = child.wait();
        }
    }
}
