//! Receipts from anywhere: what is no receipt is refused, and of one that a server has signed, whatever it says, votes are
//! counted again or said to be beyond counting.

use mk::verify::receipt::{MAX_BYTES, Payload, PublicKey, open};

pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(receipt) = open(&text) {
        assert!(text.len() <= MAX_BYTES && receipt.key_id.len() == 16, "{text:?}");
    }
    if let Ok(key) = PublicKey::from_pem(&text) {
        assert_eq!(PublicKey::from_pem(&key.to_pem()).as_ref(), Ok(&key));
    }
    let Ok(payload) = serde_json::from_slice::<Payload>(bytes) else { return };
    for record in &payload.claims {
        for min_required in [2, 3] {
            let Ok(result) = payload.recount(record, min_required) else { continue };
            assert_eq!(result.original_options, record.result.original_options);
            let votes = result.model_answers.len() + result.model_errors.len();
            assert_eq!(votes, record.votes.len(), "every vote is accounted for");
        }
    }
}
