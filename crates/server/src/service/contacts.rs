//! Contacts with consent: asking, answering, removing.

use bandstand_domain::contact::{
    self, Answer, AnswerError, AskError, Asking, Contact, ContactRequest, Relation, RequestStatus,
};
use bandstand_domain::event::Event;
use bandstand_domain::identity::Profile;
use bandstand_store::contact_requests::{KeyedRequest, NewRequest};
use bandstand_store::contacts::BATCH;
use bandstand_store::{Reader, StoreError, Writer, contact_requests, contacts, identities, participants};
use bandstand_wire::ids::{ContactId, ContactRequestId, IdentityId};
use bandstand_wire::time::Timestamp;
use uuid::Uuid;

use crate::auth::Caller;
use crate::service::lists::Listed;
use crate::state::Services;

/// Why something about contacts is refused.
#[derive(Debug, thiserror::Error)]
pub enum ContactError {
    /// Nobody has that handle, it is no contact, or there is no such request that the caller may know of.
    #[error("not found")]
    NotFound,
    /// There is nothing to ask for.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The request cannot be answered so.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Which contact is meant. A handle is folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContactTarget {
    /// By the caller's record of it, or by the identity's own id.
    Id(Uuid),
    /// By its handle.
    Handle(String),
}

/// Which request is meant. A handle is folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestTarget {
    /// By its id.
    Id(ContactRequestId),
    /// The pending one with this handle on the other side.
    Handle(String),
}

/// An agent's requests: a page of each direction.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestPages {
    /// Pending ones of others.
    pub received: Listed<ContactRequest>,
    /// Its own.
    pub sent: Listed<ContactRequest>,
}

impl Services {
    /// Asks whoever has this (folded) handle to become contacts; the request is pending then. When the other has asked
    /// already, both want it: then that request is approved, and is the answer.
    ///
    /// # Errors
    /// [`ContactError::NotFound`], [`ContactError::Ask`].
    pub async fn ask_contact(
        &self,
        caller: Caller,
        handle: String,
        message: Option<String>,
    ) -> Result<ContactRequest, ContactError> {
        let (id, now) = (self.ids.contact_request(), self.clock.now());
        let records = [self.ids.contact(), self.ids.contact()];
        self.store
            .write("ask_contact", move |tx| {
                Box::pin(async move {
                    let own = contacts::key_of(tx, caller.identity).await?.ok_or(ContactError::NotFound)?;
                    let other = contacts::key_of_handle(tx, &handle).await?.ok_or(ContactError::NotFound)?;
                    contacts::lock(tx, &[own, other]).await?;
                    if !(contacts::exists(tx, own).await? && contacts::exists(tx, other).await?) {
                        return Err(ContactError::NotFound);
                    }
                    let open = contact_requests::open_between(tx, own, other).await?;
                    match contact::ask(relation(tx, own, other, open.as_ref()).await?)? {
                        Asking::Request => {
                            let message = message.as_deref();
                            let new =
                                NewRequest { id, requester_key: own, recipient_key: other, message, inserted_at: now };
                            let inserted = contact_requests::insert(tx, new).await?;
                            let request = inserted.ok_or(AskError::AlreadyPending)?;
                            tx.emit(Event::ContactRequestReceived { request: request.clone() });
                            Ok(request)
                        }
                        Asking::Approve => {
                            let open = open.ok_or(ContactError::NotFound)?;
                            settle(tx, &open, RequestStatus::Approved, records, now).await
                        }
                    }
                })
            })
            .await
    }

    /// Answers a request, or takes it back.
    ///
    /// # Errors
    /// [`ContactError::NotFound`] also when the request is between others; [`ContactError::Answer`].
    pub async fn answer_request(
        &self,
        caller: Caller,
        target: RequestTarget,
        answer: Answer,
    ) -> Result<ContactRequest, ContactError> {
        let now = self.clock.now();
        let records = [self.ids.contact(), self.ids.contact()];
        self.store
            .write("answer_request", move |tx| {
                Box::pin(async move {
                    let own = contacts::key_of(tx, caller.identity).await?.ok_or(ContactError::NotFound)?;
                    let found = find_request(tx, own, &target, answer).await?.ok_or(ContactError::NotFound)?;
                    contacts::lock(tx, &[found.requester_key, found.recipient_key]).await?;
                    // Somebody may have answered it while this waited for the lock.
                    let keyed = contact_requests::by_id(tx, found.request.id).await?.ok_or(ContactError::NotFound)?;
                    let side = keyed.side_of(own).ok_or(ContactError::NotFound)?;
                    let status = contact::answer(keyed.request.status, side, answer)?;
                    // A deleted one's requests are about to be cancelled; until then nobody may become its contact.
                    let both_exist = contacts::exists(tx, keyed.requester_key).await?
                        && contacts::exists(tx, keyed.recipient_key).await?;
                    if status == RequestStatus::Approved && !both_exist {
                        return Err(ContactError::NotFound);
                    }
                    settle(tx, &keyed, status, records, now).await
                })
            })
            .await
    }

    /// Ends a contact, for both.
    ///
    /// # Errors
    /// [`ContactError::NotFound`].
    pub async fn remove_contact(&self, caller: Caller, target: ContactTarget) -> Result<(), ContactError> {
        self.store
            .write("remove_contact", move |tx| {
                Box::pin(async move {
                    let own = contacts::key_of(tx, caller.identity).await?.ok_or(ContactError::NotFound)?;
                    let other = match target {
                        ContactTarget::Id(id) => contacts::find(tx, own, id).await?,
                        ContactTarget::Handle(handle) => contacts::key_of_handle(tx, &handle).await?,
                    };
                    let other = other.ok_or(ContactError::NotFound)?;
                    contacts::lock(tx, &[own, other]).await?;
                    if part(tx, own, other).await? { Ok(()) } else { Err(ContactError::NotFound) }
                })
            })
            .await
    }

    /// Somebody's contacts, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn contacts(&self, who: IdentityId, limit: i64, offset: i64) -> Result<Listed<Contact>, StoreError> {
        self.store
            .read("contacts", move |tx| {
                Box::pin(async move {
                    let total = contacts::tallies(tx, who).await?.contacts;
                    Ok(Listed { rows: contacts::list(tx, who, limit, offset).await?, total: Some(total) })
                })
            })
            .await
    }

    /// The pending requests that somebody received, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn received_requests(
        &self,
        who: IdentityId,
        limit: i64,
        offset: i64,
    ) -> Result<Listed<ContactRequest>, StoreError> {
        self.store.read("received_requests", move |tx| Box::pin(received(tx, who, limit, offset))).await
    }

    /// The requests of one status or any that somebody sent, newest first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn sent_requests(
        &self,
        who: IdentityId,
        status: Option<RequestStatus>,
        limit: i64,
        offset: i64,
    ) -> Result<Listed<ContactRequest>, StoreError> {
        self.store.read("sent_requests", move |tx| Box::pin(sent(tx, who, status, limit, offset))).await
    }

    /// Both of these, as of one moment.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn contact_requests(
        &self,
        who: IdentityId,
        sent_status: Option<RequestStatus>,
        limit: i64,
        offset: i64,
    ) -> Result<RequestPages, StoreError> {
        self.store
            .read("contact_requests", move |tx| {
                Box::pin(async move {
                    Ok(RequestPages {
                        received: received(tx, who, limit, offset).await?,
                        sent: sent(tx, who, sent_status, limit, offset).await?,
                    })
                })
            })
            .await
    }

    /// Who has this (folded) handle.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn resolve_handle(&self, handle: String) -> Result<Option<Profile>, StoreError> {
        self.store
            .read("resolve_handle", move |tx| Box::pin(async move { identities::by_handle(tx, &handle).await }))
            .await
    }

    /// Ends the contacts of somebody who was deleted, and cancels its pending requests: some at a time, so that nobody
    /// waits long for it. If the server dies in between, the background job goes on.
    pub(super) async fn drop_contacts_of(&self, id: IdentityId) -> Result<(), StoreError> {
        loop {
            let now = self.clock.now();
            let ended: i64 =
                self.store.write("drop_contacts", move |tx| Box::pin(drop_some_contacts(tx, id, now))).await?;
            if ended < BATCH {
                return Ok(());
            }
        }
    }
}

async fn received(
    tx: &mut Reader,
    who: IdentityId,
    limit: i64,
    offset: i64,
) -> Result<Listed<ContactRequest>, StoreError> {
    let total = contacts::tallies(tx, who).await?.received;
    Ok(Listed { rows: contact_requests::received(tx, who, limit, offset).await?, total: Some(total) })
}

async fn sent(
    tx: &mut Reader,
    who: IdentityId,
    status: Option<RequestStatus>,
    limit: i64,
    offset: i64,
) -> Result<Listed<ContactRequest>, StoreError> {
    let total = contacts::tallies(tx, who).await?.sent(status);
    Ok(Listed { rows: contact_requests::sent(tx, who, status, limit, offset).await?, total: Some(total) })
}

/// How two who are locked stand to each other, given what is pending between them.
async fn relation(tx: &mut Reader, own: i64, other: i64, open: Option<&KeyedRequest>) -> Result<Relation, StoreError> {
    if own == other {
        return Ok(Relation::Same);
    }
    if contacts::are_linked(tx, own, other).await? {
        return Ok(Relation::Contacts);
    }
    Ok(open.and_then(|open| open.side_of(own)).map_or(Relation::Strangers, Relation::Open))
}

/// The request that is meant; by handle it is one that this answer fits.
async fn find_request(
    tx: &mut Reader,
    own: i64,
    target: &RequestTarget,
    answer: Answer,
) -> Result<Option<KeyedRequest>, StoreError> {
    match target {
        RequestTarget::Id(id) => {
            let found = contact_requests::by_id(tx, *id).await?;
            Ok(found.filter(|found| found.side_of(own).is_some()))
        }
        RequestTarget::Handle(handle) => {
            let Some(other) = contacts::key_of_handle(tx, handle).await? else { return Ok(None) };
            let found = contact_requests::open_between(tx, own, other).await?;
            Ok(found.filter(|found| found.side_of(own) == Some(answer.side())))
        }
    }
}

/// Gives a request that was pending under the lock its final status, makes contacts of an approved one's parties, and
/// announces it.
async fn settle(
    tx: &mut Writer,
    keyed: &KeyedRequest,
    status: RequestStatus,
    records: [ContactId; 2],
    now: Timestamp,
) -> Result<ContactRequest, ContactError> {
    let settled = contact_requests::settle(tx, keyed, status, now).await?;
    let request = settled.ok_or(AnswerError::Resolved(status))?;
    tx.emit(Event::ContactRequestUpdated { request: request.clone() });
    if status == RequestStatus::Approved {
        let requester = (request.requester.id, keyed.requester_key, keyed.recipient_key);
        let recipient = (request.recipient.id, keyed.recipient_key, keyed.requester_key);
        for (record, (identity, own, other)) in records.into_iter().zip([requester, recipient]) {
            if let Some(contact) = contacts::insert(tx, record, own, other, now).await? {
                tx.emit(Event::ContactAdded { identity, contact });
            }
        }
    }
    Ok(request)
}

/// Ends both sides of what two who are locked have, and announces it; false when they are no contacts.
async fn part(tx: &mut Writer, one: i64, other: i64) -> Result<bool, StoreError> {
    let mut any = false;
    for (own, other) in [(one, other), (other, one)] {
        if let Some((identity, contact)) = contacts::remove(tx, own, other).await? {
            tx.emit(Event::ContactRemoved { identity, contact });
            any = true;
        }
    }
    Ok(any)
}

/// Ends at most [`BATCH`] contacts and pending requests of somebody who was deleted; how many.
async fn drop_some_contacts(tx: &mut Writer, id: IdentityId, now: Timestamp) -> Result<i64, StoreError> {
    let Some(key) = participants::member_key(tx, id).await? else { return Ok(0) };
    let linked = contacts::some_of(tx, key, BATCH).await?;
    let found = i64::try_from(linked.len()).unwrap_or(BATCH);
    let open = contact_requests::some_open_of(tx, key, BATCH - found).await?;
    let others = open.iter().flat_map(|keyed| [keyed.requester_key, keyed.recipient_key]);
    let locked: Vec<i64> = linked.iter().copied().chain(others).chain([key]).collect();
    contacts::lock(tx, &locked).await?;
    for other in &linked {
        part(tx, key, *other).await?;
    }
    for keyed in &open {
        if let Some(request) = contact_requests::settle(tx, keyed, RequestStatus::Cancelled, now).await? {
            tx.emit(Event::ContactRequestUpdated { request });
        }
    }
    Ok(found + i64::try_from(open.len()).unwrap_or(BATCH))
}
