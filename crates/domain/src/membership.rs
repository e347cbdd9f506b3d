//! Who is in a room, and who may add or remove whom.

use bandstand_wire::ids::{IdentityId, IdentityKind, OrganizationId};
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
    /// Whether it is an agent that is stopped here.
    pub stopped: bool,
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
    #[error("you may add only peers: your owner, sibling and global agents, those of your organization, and contacts")]
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
    /// The organization of the user, or of the agent's owner.
    pub organization: Option<OrganizationId>,
    /// An agent that its owner lets the whole organization recruit.
    pub shared_with_organization: bool,
}

impl Peerage {
    /// The user whose network this is: a user's own, an agent's owner's.
    pub fn network(&self) -> IdentityId {
        self.owner.unwrap_or(self.id)
    }

    /// Whether `target` is a peer for being in the same organization: its shared agents to all, its users to users.
    fn knows_by_organization(&self, target: &Self) -> bool {
        let is_known = match target.kind {
            IdentityKind::Agent => target.shared_with_organization,
            IdentityKind::User => self.kind == IdentityKind::User,
        };
        is_known && self.organization.is_some() && self.organization == target.organization
    }
}

/// Whether `caller` may recruit `target`: global agents, whoever is in the same network (the owner and its agents), who
/// is known within the organization, and the caller's own contacts.
pub fn is_peer(caller: &Peerage, target: &Peerage, is_contact: bool) -> bool {
    is_contact || target.is_global || target.network() == caller.network() || caller.knows_by_organization(target)
}

/// Somebody that may be recruited, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Who.
    pub profile: Profile,
    /// Why it is listed.
    pub source: PeerSource,
    /// Whether it is a contact, whatever it is listed for.
    pub is_contact: bool,
}

words! {
    /// Why somebody is a peer.
    PeerSource {
        /// It is global, or in the same network.
        Registry = "registry",
        /// It is a contact, and nothing else.
        Contact = "contact",
    }
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
            stopped: false,
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
    fn a_stranger_becomes_a_peer_by_being_a_contact() {
        let id = |number| IdentityId(Uuid::from_u128(number));
        let agent = |number, owner, is_global| Peerage {
            id: id(number),
            kind: IdentityKind::Agent,
            owner: Some(id(owner)),
            is_global,
            organization: None,
            shared_with_organization: false,
        };
        let user = |number| Peerage {
            id: id(number),
            kind: IdentityKind::User,
            owner: None,
            is_global: false,
            organization: None,
            shared_with_organization: false,
        };
        let table = [
            (agent(1, 10, false), agent(2, 10, false), true),
            (agent(1, 10, false), user(10), true),
            (user(10), agent(1, 10, false), true),
            (agent(1, 10, false), agent(2, 20, true), true),
            (agent(1, 10, false), agent(2, 20, false), false),
            (agent(1, 10, false), user(20), false),
            (user(10), user(20), false),
            (user(10), agent(2, 20, false), false),
        ];
        for (caller, target, without) in table {
            assert_eq!(is_peer(&caller, &target, false), without, "{caller:?} {target:?}");
            assert!(is_peer(&caller, &target, true), "{caller:?} {target:?}");
        }
    }

    #[test]
    fn an_organization_makes_peers_of_its_users_and_shared_agents() {
        let peerage = |number, owner: Option<u128>, organization: Option<u128>, shared| Peerage {
            id: IdentityId(Uuid::from_u128(number)),
            kind: if owner.is_some() { IdentityKind::Agent } else { IdentityKind::User },
            owner: owner.map(|owner| IdentityId(Uuid::from_u128(owner))),
            is_global: false,
            organization: organization.map(|number| OrganizationId(Uuid::from_u128(number))),
            shared_with_organization: shared,
        };
        let user = |number, organization| peerage(number, None, organization, false);
        let agent = |number, organization, shared| peerage(number, Some(number + 100), organization, shared);
        for (caller, target, is) in [
            (user(1, Some(7)), user(2, Some(7)), true),
            (user(1, Some(7)), user(2, Some(8)), false),
            (user(1, None), user(2, None), false),
            (user(1, Some(7)), agent(2, Some(7), true), true),
            (user(1, Some(7)), agent(2, Some(7), false), false),
            (user(1, Some(7)), agent(2, Some(8), true), false),
            (user(1, None), agent(2, None, true), false),
            (agent(1, Some(7), false), agent(2, Some(7), true), true),
            (agent(1, Some(7), true), agent(2, Some(7), false), false),
            (agent(1, Some(7), true), user(2, Some(7)), false),
        ] {
            assert_eq!(is_peer(&caller, &target, false), is, "{caller:?} {target:?}");
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
