//! Pages of a what-if scenario, through the tools that write.

use escurel_core::api::*;
use escurel_core::{Edit, Then};

use crate::support::*;

const ACME: &str = "---\nskill: customer\nid: acme\nstatus: open\n---\n# Acme\n\nBase.\n";
const WHAT_IF: &str = "---\nskill: customer\nid: acme\nstatus: lost\n---\n# Acme\n\nWhat if.\n";

fn vault() -> Vault {
    Vault::new(&[
        (
            "customer.md",
            "---\ntype: skill\nid: customer\n---\n# Customer\n",
        ),
        ("customer/acme.md", ACME),
    ])
}

fn in_boom(id: &str) -> PageName {
    PageName {
        id: id.into(),
        scenario: Some("boom".into()),
    }
}

fn write(page_id: &str, scenario: Option<&str>, content: &str) -> UpdateRequest {
    UpdateRequest {
        page_id: page_id.into(),
        scenario: scenario.map(str::to_owned),
        content: content.into(),
        ..UpdateRequest::default()
    }
}

fn shown(kb: &escurel_core::Kb, scenario: Option<&str>) -> String {
    let request = ExpandRequest {
        page_id: "[[customer::acme]]".into(),
        scenario: scenario.map(str::to_owned),
        ..ExpandRequest::default()
    };
    kb.expand(&me(), &request).unwrap().unwrap().body
}

#[test]
fn a_scenarios_page_takes_the_place_of_the_bases_and_goes_again() {
    let vault = vault();
    let kb = vault.open();
    let made = kb
        .update_page(&me(), &write("[[customer::acme]]", Some("boom"), WHAT_IF))
        .unwrap();
    assert!(made.ok && made.issues.is_empty(), "{made:?}");
    assert_eq!(made.page_id, "scenarios/boom/customer/acme.md");
    let file = vault.read(&made.page_id);
    assert!(
        file.contains("scenario: boom\n") && file.contains("What if."),
        "{file}"
    );
    assert_eq!(
        (shown(&kb, None), shown(&kb, Some("boom"))),
        ("# Acme\n\nBase.\n".into(), "# Acme\n\nWhat if.\n".into())
    );
    assert_eq!(vault.read("customer/acme.md"), ACME);

    // Again, by its path, by what its text says, and by the place of the base's page.
    for (page_id, scenario) in [
        (made.page_id.as_str(), None),
        ("[[customer::acme]]", None),
        ("customer/acme.md", Some("boom")),
    ] {
        let text = file.replace("What if.", page_id);
        let again = kb
            .update_page(&me(), &write(page_id, scenario, &text))
            .unwrap();
        assert!(
            again.ok && again.page_id == made.page_id,
            "{page_id}: {again:?}"
        );
    }
    let edit = EditRequest {
        page_id: "[[customer::acme]]".into(),
        scenario: Some("boom".into()),
        ..EditRequest::default()
    };
    let key = Edit::Key {
        key: "status".into(),
        value: Some("won".into()),
    };
    assert!(kb.edit_page(&me(), &edit, &key).unwrap().ok);
    assert!(vault.read(&made.page_id).contains("status: won"));
    assert_eq!(
        kb.page_history(&me(), in_boom("[[customer::acme]]"), 10)
            .unwrap()
            .versions
            .len(),
        5
    );
    assert_eq!(
        kb.page_history(&me(), &made.page_id, 10)
            .unwrap()
            .versions
            .len(),
        5
    );

    let gone = kb
        .delete_page(&me(), in_boom("[[customer::acme]]"), None, false)
        .unwrap();
    assert!(gone.ok && gone.page_id == made.page_id, "{gone:?}");
    assert_eq!(vault.read("customer/acme.md"), ACME);
    let back = kb
        .restore_page(&me(), &made.page_id, &Then::Version(1), false)
        .unwrap();
    assert!(back.ok, "{back:?}");
    assert_eq!(shown(&kb, Some("boom")), "# Acme\n\nWhat if.\n");
}

#[test]
fn the_base_is_never_written_in_place_of_a_scenario_nor_the_reverse() {
    let vault = vault();
    let kb = vault.open();
    let code = |refusal: escurel_core::Refusal| refusal.code.name();
    let made = kb
        .update_page(
            &me(),
            &write(
                "[[customer::other]]",
                Some("boom"),
                &WHAT_IF.replace("acme", "other"),
            ),
        )
        .unwrap();
    assert!(made.ok, "{made:?}");
    let none = kb.delete_page(&me(), in_boom("[[customer::acme]]"), None, false);
    assert_eq!(
        code(none.unwrap_err()),
        "page_not_found",
        "the scenario has no page of its own"
    );
    let said = WHAT_IF.replace("status: lost", "scenario: boom");
    let wrong = kb
        .update_page(&me(), &write("customer/acme.md", None, &said))
        .unwrap();
    assert_eq!(wrong.issues[0].code, "identity_changed", "{wrong:?}");
    let other = kb.update_page(&me(), &write("[[customer::acme]]", Some("bust"), &said));
    assert_eq!(code(other.unwrap_err()), "invalid_argument");
    let moved = kb.move_page(&me(), &made.page_id, "elsewhere.md", None, false);
    assert_eq!(code(moved.unwrap_err()), "not_supported");
    assert_eq!(vault.read("customer/acme.md"), ACME);
}
