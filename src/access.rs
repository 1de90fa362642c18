//! Who may do what: pure policy, apart from how a caller proves who they are.

use serde_json::Value;

use crate::domain::{RoomId, UserId};

/// The largest `info`, in bytes of JSON.
pub const MAX_INFO_BYTES: usize = 4_096;

/// What a client's token lets it do, in the rooms that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Be in a room as the token's subject, and read it.
    Member,
    /// Read rooms.
    Observer,
    /// Everything: act for anybody, remove, close, read the history.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Member, Self::Observer, Self::Admin];

    /// The word in a token.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Observer => "observer",
            Self::Admin => "admin",
        }
    }

    /// The scope of this name, if it is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// Rooms that a token names: one by its id, or all that start alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoomPattern {
    /// The room of this id.
    Exact(String),
    /// Every room whose id starts like this.
    Prefix(String),
}

impl RoomPattern {
    /// What ends in `*` is a prefix (`team-a-*`), so this is not for an id that somebody else chose.
    pub fn parse(text: &str) -> Self {
        match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.to_owned()),
            None => Self::Exact(text.to_owned()),
        }
    }

    fn matches(&self, room: &RoomId) -> bool {
        match self {
            Self::Exact(id) => id == room.as_str(),
            Self::Prefix(prefix) => room.as_str().starts_with(prefix),
        }
    }

    fn covers(&self, prefix: &str) -> bool {
        matches!(self, Self::Prefix(stem) if prefix.starts_with(stem))
    }
}

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Who its holder is.
    pub subject: UserId,
    /// What its holder may do.
    pub scopes: Vec<Scope>,
    /// `None` where the token names no rooms: all of them for an admin, none for anybody else.
    pub rooms: Option<Vec<RoomPattern>>,
    /// A JSON object about its holder that only the signer can have written, of [`MAX_INFO_BYTES`] at most.
    pub info: Option<Value>,
    /// How many members a room may have for its holder to join it, 1 or more, where the signer set a limit.
    pub max_members: Option<i32>,
}

/// Whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// No authentication is configured: everybody may do everything.
    Anyone,
    /// The holder of a server key: may do everything.
    Server,
    /// The holder of a token.
    Client(Grant),
}

impl Caller {
    /// Whether they may join, renew and leave as this user in this room.
    pub fn may_act_as(&self, user: &UserId, room: &RoomId) -> bool {
        match self {
            Self::Anyone | Self::Server => true,
            Self::Client(grant) => {
                self.may_administer(room)
                    || grant.has(Scope::Member) && grant.subject == *user && grant.reaches(room)
            }
        }
    }

    /// Whether they may see who is in this room.
    pub fn may_read(&self, room: &RoomId) -> bool {
        match self {
            Self::Anyone | Self::Server => true,
            Self::Client(grant) => {
                self.may_administer(room)
                    || (grant.has(Scope::Member) || grant.has(Scope::Observer))
                        && grant.reaches(room)
            }
        }
    }

    /// Whether they may see which rooms there are that start like this.
    pub fn may_list(&self, prefix: &str) -> bool {
        match self {
            Self::Anyone | Self::Server => true,
            Self::Client(grant) => {
                self.is_admin()
                    || !grant.scopes.is_empty()
                        && grant
                            .rooms
                            .iter()
                            .flatten()
                            .any(|pattern| pattern.covers(prefix))
            }
        }
    }

    /// Whether they may see in which rooms this user is.
    pub fn may_locate(&self, user: &UserId) -> bool {
        match self {
            Self::Anyone | Self::Server => true,
            Self::Client(grant) => {
                self.is_admin() || grant.has(Scope::Member) && grant.subject == *user
            }
        }
    }

    /// Whether they may remove people from this room, close it and read its history.
    pub fn may_administer(&self, room: &RoomId) -> bool {
        match self {
            Self::Anyone | Self::Server => true,
            Self::Client(grant) => {
                grant.has(Scope::Admin) && (grant.rooms.is_none() || grant.reaches(room))
            }
        }
    }

    /// Whether they may do the same with every room that starts like this.
    pub fn may_administer_all(&self, prefix: &str) -> bool {
        match self {
            Self::Anyone | Self::Server => true,
            Self::Client(grant) => {
                grant.has(Scope::Admin)
                    && grant
                        .rooms
                        .as_ref()
                        .is_none_or(|rooms| rooms.iter().any(|pattern| pattern.covers(prefix)))
            }
        }
    }

    /// Whether there may be a room whose history they may read: enough for what tells of no room.
    pub fn is_admin_of_any(&self) -> bool {
        match self {
            Self::Anyone | Self::Server => true,
            Self::Client(grant) => grant.has(Scope::Admin),
        }
    }

    /// Whether they may do what concerns all rooms: batches, the feed, anybody's history.
    pub fn is_admin(&self) -> bool {
        self.may_administer_all("")
    }
}

impl Grant {
    fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    fn reaches(&self, room: &RoomId) -> bool {
        self.rooms
            .iter()
            .flatten()
            .any(|pattern| pattern.matches(room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(scope: Scope, rooms: Option<&[&str]>) -> Caller {
        Caller::Client(Grant {
            subject: user("alice"),
            scopes: vec![scope],
            rooms: rooms.map(|rooms| rooms.iter().map(|r| RoomPattern::parse(r)).collect()),
            info: None,
            max_members: None,
        })
    }

    fn user(id: &str) -> UserId {
        UserId::parse(id).unwrap()
    }

    fn room(id: &str) -> RoomId {
        RoomId::parse(id).unwrap()
    }

    #[test]
    fn a_member_acts_only_as_itself_and_in_its_rooms() {
        let member = client(Scope::Member, Some(&["lobby", "team-a-*"]));
        assert!(member.may_act_as(&user("alice"), &room("lobby")));
        assert!(member.may_act_as(&user("alice"), &room("team-a-1")));
        assert!(!member.may_act_as(&user("bob"), &room("lobby")));
        assert!(!member.may_act_as(&user("alice"), &room("lobby-2")));
        assert!(member.may_read(&room("lobby")) && !member.may_read(&room("team-b-1")));
        assert!(member.may_locate(&user("alice")) && !member.may_locate(&user("bob")));
        assert!(!member.may_administer(&room("lobby")) && !member.is_admin());
    }

    #[test]
    fn an_observer_only_reads() {
        let observer = client(Scope::Observer, Some(&["lobby"]));
        assert!(observer.may_read(&room("lobby")) && !observer.may_read(&room("other")));
        assert!(!observer.may_act_as(&user("alice"), &room("lobby")));
        assert!(!observer.may_locate(&user("alice")));
        assert!(!observer.is_admin());
    }

    #[test]
    fn a_client_lists_rooms_only_within_a_prefix_of_its_own() {
        let member = client(Scope::Member, Some(&["lobby", "team-a-*"]));
        assert!(member.may_list("team-a-") && member.may_list("team-a-1"));
        assert!(!member.may_list("team-") && !member.may_list("lobby") && !member.may_list(""));
    }

    #[test]
    fn a_token_without_rooms_reaches_none_unless_it_is_an_admins() {
        let member = client(Scope::Member, None);
        assert!(!member.may_read(&room("lobby")) && !member.may_list(""));
        let admin = client(Scope::Admin, None);
        assert!(admin.may_act_as(&user("bob"), &room("lobby")) && admin.is_admin());
    }

    #[test]
    fn an_admin_of_some_rooms_is_none_of_all() {
        let admin = client(Scope::Admin, Some(&["team-a-*"]));
        assert!(admin.may_administer(&room("team-a-1")) && !admin.may_administer(&room("lobby")));
        assert!(!admin.is_admin() && admin.is_admin_of_any());
        assert!(!client(Scope::Observer, Some(&["*"])).is_admin_of_any());
        assert!(client(Scope::Admin, Some(&["*"])).is_admin());
    }
}
