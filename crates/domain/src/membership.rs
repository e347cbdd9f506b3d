//! Who is in a room, and who may add or remove whom.

use bandstand_wire::ids::{IdentityId, IdentityKind};
use bandstand_wire::time::Timestamp;

use crate::identity::Profile;
use crate::room::words;

words! {
    /// What a participant may do in its room.
    Role {
        /// May do everything; a room always has one.
        Owner = "owner",
        /// May add members and remove members.
        Admin = "admin",
        /// Takes part.
        Member = "member",
    }
}

words! {
    /// A participant's standing (not presence). Agents start as inactive.
    ParticipantStatus {
        /// Takes part.
        Active = "active",
        /// Takes part; what agents start as.
        Inactive = "inactive",
        /// Kept out: hears nothing.
        Blocked = "blocked",
    }
}

/// A current participant of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    /// Who.
    pub profile: Profile,
    /// An agent's owner.
    pub owner: Option<IdentityId>,
    /// What it may do here.
    pub role: Role,
    /// Its standing.
    pub status: ParticipantStatus,
    /// Since when.
    pub joined_at: Timestamp,
}

impl Participant {
    /// What somebody's standing is when it joins.
    pub fn initial_status(kind: IdentityKind) -> ParticipantStatus {
        match kind {
            IdentityKind::User => ParticipantStatus::Active,
            IdentityKind::Agent => ParticipantStatus::Inactive,
        }
    }
}

/// Why a participant may not be added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembershipError {
    /// Only an owner grants owner or admin.
    #[error("only an owner of the room may grant the role {}", .0.as_str())]
    RoleNotGrantable(Role),
    /// The target is not among those whom the caller may recruit.
    #[error("you may add only peers: your owner, sibling and global agents, and contacts")]
    NotAPeer,
    /// The caller's role does not allow to remove this participant.
    #[error("your role in this room does not allow removing this participant")]
    RoleTooLow,
    /// An agent never removes a person.
    #[error("an agent may not remove a user from a room")]
    AgentRemovesUser,
    /// The room would have no owner.
    #[error("the sole owner of a room cannot leave it")]
    SoleOwner,
}

/// What decides whether somebody may be recruited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peerage {
    /// Who.
    pub id: IdentityId,
    /// Person or program.
    pub kind: IdentityKind,
    /// An agent's owner.
    pub owner: Option<IdentityId>,
    /// An agent that everybody may recruit.
    pub is_global: bool,
}

impl Peerage {
    /// The user whose network this is: a user's own, an agent's owner's.
    pub fn network(&self) -> IdentityId {
        self.owner.unwrap_or(self.id)
    }
}

/// Whether `caller` may recruit `target`: global agents, and whoever is in the same network (the owner and its agents).
pub fn is_peer(caller: &Peerage, target: &Peerage) -> bool {
    target.is_global || target.network() == caller.network()
}

/// Whether a caller of role `caller` may add somebody as `wanted`. Asked before looking whether the target is already
/// in, as the platform does.
///
/// # Errors
/// [`MembershipError::RoleNotGrantable`].
pub fn may_grant(caller: Role, wanted: Role) -> Result<(), MembershipError> {
    match (caller, wanted) {
        (Role::Owner, _) | (_, Role::Member) => Ok(()),
        (Role::Admin | Role::Member, Role::Owner | Role::Admin) => Err(MembershipError::RoleNotGrantable(wanted)),
    }
}

/// Whether `caller` may remove `target`, given how many owners the room has.
///
/// Everybody may leave, except the sole owner. An owner removes anybody else, an admin removes members. An agent never
/// removes a user.
///
/// # Errors
/// The rule that stands against it.
pub fn may_remove(caller: &Participant, target: &Participant, owners: usize) -> Result<(), MembershipError> {
    let itself = caller.profile.id == target.profile.id;
    if !itself && caller.profile.kind == IdentityKind::Agent && target.profile.kind == IdentityKind::User {
        return Err(MembershipError::AgentRemovesUser);
    }
    let allowed = itself
        || match caller.role {
            Role::Owner => true,
            Role::Admin => target.role == Role::Member,
            Role::Member => false,
        };
    if !allowed {
        return Err(MembershipError::RoleTooLow);
    }
    if target.role == Role::Owner && owners <= 1 {
        return Err(MembershipError::SoleOwner);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn participant(number: u128, kind: IdentityKind, role: Role) -> Participant {
        Participant {
            profile: Profile {
                id: IdentityId(Uuid::from_u128(number)),
                kind,
                handle: format!("p{number}"),
                name: format!("P{number}"),
                description: None,
            },
            owner: None,
            role,
            status: Participant::initial_status(kind),
            joined_at: Timestamp::from_micros(0),
        }
    }

    #[test]
    fn only_an_owner_grants_more_than_member() {
        for (caller, wanted, allowed) in [
            (Role::Owner, Role::Owner, true),
            (Role::Owner, Role::Admin, true),
            (Role::Admin, Role::Member, true),
            (Role::Admin, Role::Admin, false),
            (Role::Member, Role::Member, true),
            (Role::Member, Role::Owner, false),
        ] {
            assert_eq!(may_grant(caller, wanted).is_ok(), allowed, "{caller:?} grants {wanted:?}");
        }
    }

    #[test]
    fn the_removal_table() {
        use IdentityKind::{Agent, User};
        use MembershipError as E;
        let table = [
            // caller, target, owners, what is said
            ((1, Agent, Role::Owner), (2, Agent, Role::Member), 1, Ok(())),
            ((1, Agent, Role::Owner), (2, Agent, Role::Admin), 1, Ok(())),
            ((1, Agent, Role::Owner), (2, Agent, Role::Owner), 2, Ok(())),
            ((1, Agent, Role::Owner), (2, User, Role::Member), 1, Err(E::AgentRemovesUser)),
            ((1, Agent, Role::Owner), (1, Agent, Role::Owner), 1, Err(E::SoleOwner)),
            ((1, Agent, Role::Owner), (1, Agent, Role::Owner), 2, Ok(())),
            ((1, Agent, Role::Member), (1, Agent, Role::Member), 1, Ok(())),
            ((1, Agent, Role::Admin), (1, Agent, Role::Admin), 1, Ok(())),
            ((1, Agent, Role::Admin), (2, Agent, Role::Member), 1, Ok(())),
            ((1, Agent, Role::Admin), (2, Agent, Role::Admin), 1, Err(E::RoleTooLow)),
            ((1, Agent, Role::Admin), (2, Agent, Role::Owner), 2, Err(E::RoleTooLow)),
            ((1, Agent, Role::Member), (2, Agent, Role::Owner), 1, Err(E::RoleTooLow)),
            ((1, Agent, Role::Member), (2, User, Role::Owner), 1, Err(E::AgentRemovesUser)),
            ((1, User, Role::Owner), (2, User, Role::Member), 1, Ok(())),
            ((1, User, Role::Owner), (2, User, Role::Owner), 2, Ok(())),
            ((1, User, Role::Owner), (1, User, Role::Owner), 1, Err(E::SoleOwner)),
            ((1, User, Role::Member), (2, Agent, Role::Member), 1, Err(E::RoleTooLow)),
        ];
        for ((cn, ck, cr), (tn, tk, tr), owners, said) in table {
            let (caller, target) = (participant(cn, ck, cr), participant(tn, tk, tr));
            assert_eq!(may_remove(&caller, &target, owners), said, "{ck:?} {cr:?} removes {tk:?} {tr:?}");
        }
    }
}
