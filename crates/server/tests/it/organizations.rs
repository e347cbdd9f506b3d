//! Organizations: who is in one, and whom that makes peers.

use bandstand_server::service::admin::AdminError;
use serde_json::json;

use crate::support::{Caller, TestApp, stories};

stories!(
    users_of_an_organization_are_peers,
    a_shared_agent_is_a_peer_within_the_organization,
    a_user_is_in_one_organization_at_most,
    of_many_that_claim_a_user_one_wins,
    organizations_are_named_by_name_or_id,
);

impl Caller {
    async fn recruits(&self) -> Vec<String> {
        self.get("peers").await.assert_status(200).strings("name")
    }
}

async fn users_of_an_organization_are_peers(app: TestApp) {
    let (olga, eve, zoe) = (app.owner(), app.user("eve").await, app.user("zoe").await);
    let (ana, bob) = (app.agent("ana").await, eve.registers("bob").await);
    app.organization("acme", &[&olga]).await;
    assert_eq!(olga.recruits().await, ["ana"]);
    app.state().services.add_organization_member("ACME", "@Eve").await.expect("eve joins");
    assert_eq!(olga.recruits().await, ["eve", "ana"]);
    assert_eq!(eve.recruits().await, ["olga", "bob"]);
    assert_eq!(zoe.recruits().await, Vec::<String>::new());
    // Agents know their own owner among people, nobody else.
    assert_eq!(ana.recruits().await, ["olga"]);
    assert_eq!(olga.get("peers?type=Agent").await.assert_status(200).strings("name"), ["ana"]);

    let peer = olga.get("peers?type=User").await.assert_status(200);
    assert_eq!((&peer.rows()[0]["source"], &peer.rows()[0]["is_contact"]), (&json!("registry"), &json!(false)));
    let room = app.room_with(&olga, &[&ana]).await;
    assert_eq!(olga.get(&format!("peers?not_in_chat={}", room.id)).await.strings("name"), ["eve"]);
    olga.adds(&room, &zoe).await.assert_error(403, "forbidden");
    olga.adds(&room, &bob).await.assert_error(403, "forbidden");
    ana.adds(&room, &eve).await.assert_error(403, "forbidden");
}

async fn a_shared_agent_is_a_peer_within_the_organization(app: TestApp) {
    let (olga, eve, zoe) = (app.owner(), app.user("eve").await, app.user("zoe").await);
    let (ana, bob) = (app.agent("ana").await, eve.registers("bob").await);
    let cy = zoe.registers("cy").await;
    let services = &app.state().services;
    services.share_agent("eve/bob", true).await.expect("bob is shared");
    services.share_agent(&cy.id, true).await.expect("cy is shared");
    assert_eq!(olga.recruits().await, ["ana"], "without an organization it is shared with nobody");
    app.organization("acme", &[&olga, &eve]).await;
    app.organization("other", &[&zoe]).await;
    assert_eq!(olga.recruits().await, ["eve", "ana", "bob"]);
    assert_eq!(ana.recruits().await, ["olga", "bob"]);
    assert_eq!(bob.recruits().await, ["eve"], "it sees what is shared, not all that sees it");
    assert_eq!(zoe.recruits().await, ["cy"]);
    let shown = eve.get("agents").await.assert_status(200);
    assert_eq!(shown.rows()[0]["shared_with_organization"], true);

    let room = app.room_with(&ana, &[&bob]).await;
    ana.adds(&room, &cy).await.assert_error(403, "forbidden");
    bob.adds(&room, &cy).await.assert_error(403, "forbidden");
    let room = app.room_with(&olga, &[&bob, &eve]).await;
    olga.adds(&room, &cy).await.assert_error(403, "forbidden");
    services.share_agent("eve/bob", false).await.expect("bob is no longer shared");
    assert_eq!(olga.recruits().await, ["eve", "ana"]);
    let room = olga.creates_room().await;
    olga.adds(&room, &bob).await.assert_error(403, "forbidden");
    services.share_agent("eve/bob", true).await.expect("bob is shared");
    services.remove_organization_member("acme", "eve").await.expect("eve leaves");
    assert_eq!(olga.recruits().await, ["ana"]);
    olga.adds(&room, &bob).await.assert_error(403, "forbidden");
    assert!(matches!(services.share_agent("eve", true).await, Err(AdminError::NotFound { what: "agent", .. })));
    assert!(matches!(services.share_agent("eve/nobody", true).await, Err(AdminError::NotFound { .. })));
}

async fn a_user_is_in_one_organization_at_most(app: TestApp) {
    let eve = app.user("eve").await;
    app.organization("acme", &[&eve]).await;
    app.organization("other", &[]).await;
    let services = &app.state().services;
    for organization in ["acme", "other"] {
        let refused = services.add_organization_member(organization, "eve").await.unwrap_err();
        assert_eq!(refused.to_string(), "eve already belongs to \"acme\"; a user is in one organization at most");
    }
    let refused = services.remove_organization_member("other", "eve").await.unwrap_err();
    assert_eq!(refused.to_string(), "eve does not belong to \"other\"");
    services.remove_organization_member("acme", "eve").await.expect("eve leaves");
    services.add_organization_member("other", &eve.id).await.expect("eve joins the other");
    let organizations = services.list_organizations().await.expect("a list");
    let shown: Vec<_> = organizations
        .iter()
        .map(|one| (one.name.as_str(), one.members.iter().map(|member| member.handle.as_str()).collect::<Vec<_>>()))
        .collect();
    assert_eq!(shown, [("acme", vec![]), ("other", vec!["eve"])]);
}

async fn of_many_that_claim_a_user_one_wins(app: TestApp) {
    app.user("eve").await;
    let names: Vec<String> = (0..16).map(|number| format!("org {number}")).collect();
    for name in &names {
        app.organization(name, &[]).await;
    }
    let claims = names.iter().map(|name| {
        let (services, name) = (app.state().services.clone(), name.clone());
        tokio::spawn(async move { services.add_organization_member(&name, "eve").await })
    });
    let mut won = 0;
    for claim in claims.collect::<Vec<_>>() {
        match claim.await.expect("no panic") {
            Ok(_) => won += 1,
            Err(AdminError::HasOrganization { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(won, 1);
}

async fn organizations_are_named_by_name_or_id(app: TestApp) {
    let services = &app.state().services;
    let id = app.organization("Acme & Söhne", &[]).await;
    assert!(matches!(services.add_organization("ACME & SÖHNE").await, Err(AdminError::OrganizationTaken(_))));
    for wrong in ["", "  ", "a\nb", &"x".repeat(101)] {
        assert!(matches!(services.add_organization(wrong).await, Err(AdminError::Name(_))), "{wrong:?}");
    }
    for (organization, user, what) in
        [("nothing", "olga", "organization"), ("acme & söhne", "nobody", "user"), (&id, "olga/ana", "user")]
    {
        let refused = services.add_organization_member(organization, user).await.unwrap_err();
        assert!(matches!(refused, AdminError::NotFound { what: is, .. } if is == what), "{refused}");
    }
    services.add_organization_member(&id, "olga").await.expect("by its id");
    services.remove_organization_member(" acme & söhne ", "olga").await.expect("by its name");
}
