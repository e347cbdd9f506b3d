//! How an agent lives: bounds, pauses, and what it does about its contacts.

use std::path::PathBuf;
use std::time::Duration;

use super::contacts::ContactSettings;
use super::timing::IdlePauses;
use crate::client::socket::OnConflict;

/// How an agent lives. The defaults suit a long-running service.
#[derive(Clone, Debug)]
pub struct RuntimeSettings {
    /// How often a message may run in the life of this process. The platform keeps serving a message that failed, so a
    /// restart tries again. 0 runs nothing. 1.
    pub max_attempts: u32,
    /// Turns that run at the same time, over all rooms. Rooms that wait are served in the order in which they came. 32.
    pub concurrent_turns: usize,
    /// The longest that a turn may take; it then fails. Without a limit unless set.
    pub turn_limit: Option<Duration>,
    /// The time that a turn has for an orderly end when it is given up. 1 s.
    pub turn_grace: Duration,
    /// Rows of a room's past that its first turn is given, the newest ones; 0 gives none. 200.
    pub history_rows: usize,
    /// When an idle room is looked at again, in case a push was missed.
    pub idle: IdlePauses,
    /// Whether a room is told that a turn failed or ended without an answer. Yes.
    pub report_failures: bool,
    /// Whether people see that the agent works.
    pub working_state: WorkingState,
    /// How long [`super::Agent::run`] waits for running turns when it is told to stop. 30 s.
    pub stop_timeout: Duration,
    /// Whether a second process for the same agent on this machine is refused. Yes.
    pub single_instance: bool,
    /// Where the lock for that is; the system's folder for temporary files unless set.
    pub lock_folder: Option<PathBuf>,
    /// What happens when the agent is connected elsewhere.
    pub on_conflict: OnConflict,
    /// Contacts.
    pub contacts: ContactSettings,
}

impl Default for RuntimeSettings {
    fn default() -> Self {
        Self {
            max_attempts: 1,
            concurrent_turns: 32,
            turn_limit: None,
            turn_grace: Duration::from_secs(1),
            history_rows: 200,
            idle: IdlePauses::default(),
            report_failures: true,
            working_state: WorkingState::default(),
            stop_timeout: Duration::from_secs(30),
            single_instance: true,
            lock_folder: None,
            on_conflict: OnConflict::default(),
            contacts: ContactSettings::default(),
        }
    }
}

/// How people see that an agent works.
#[derive(Clone, Copy, Debug)]
pub struct WorkingState {
    /// Whether they do. Yes.
    pub reported: bool,
    /// How often it is repeated. The platform forgets it after about 10 s. 3 s.
    pub every: Duration,
    /// How long one report may take; shorter than `every`. 2 s.
    pub timeout: Duration,
    /// After so long it is repeated no more, so that a turn that hangs is seen to. Without a limit unless set.
    pub longest: Option<Duration>,
}

impl Default for WorkingState {
    fn default() -> Self {
        Self { reported: true, every: Duration::from_secs(3), timeout: Duration::from_secs(2), longest: None }
    }
}
