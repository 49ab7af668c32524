"""Drafts, checkpoints and publications of a person's project.

What it offers is loaded when it is first asked for: hashing and compressing are not for everyone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import face

if TYPE_CHECKING:
    from holdfast.workbench.batching import (
        Applied,
        FileStep,
        NewContent,
        NewDirectory,
        NewFile,
        NewLink,
        apply,
    )
    from holdfast.workbench.checkpointing import (
        NOW,
        ShownCheckpoint,
        checkpoint,
        checkpoints,
        compare,
        recover,
        show,
        storage_use,
        tidy,
    )
    from holdfast.workbench.core.batch import Chmod, Delete, Rename
    from holdfast.workbench.core.consent import (
        Consent,
        Scope,
        Sending,
        in_force,
        require_consent,
        require_no_more,
    )
    from holdfast.workbench.core.coverage import EVERYTHING, Coverage
    from holdfast.workbench.core.publication import Way
    from holdfast.workbench.core.three_way import Clashing
    from holdfast.workbench.core.tree import Node, NodeSort
    from holdfast.workbench.drafting import (
        Entered,
        discard,
        entering,
        list_drafts,
        open_draft,
        revise,
    )
    from holdfast.workbench.forking import fork_draft
    from holdfast.workbench.git_branch import BranchReview, review_branch, take_branch
    from holdfast.workbench.git_commit import CommitOrder
    from holdfast.workbench.going_back import undo
    from holdfast.workbench.holding import Held
    from holdfast.workbench.model import (
        Checkpoint,
        Committed,
        Draft,
        Mode,
        Occasion,
        Progress,
        Revision,
        deed_of,
    )
    from holdfast.workbench.overview import DraftStatus, Status, status
    from holdfast.workbench.publishing import Published, PublishOrder, publish
    from holdfast.workbench.records import Attempt, Event, Records
    from holdfast.workbench.recovering import Recovered
    from holdfast.workbench.restoring import (
        Restored,
        RestoreOrder,
        RestorePreview,
        preview_restore,
        restore,
    )
    from holdfast.workbench.reviewing import Conflict, Review, preview, review
    from holdfast.workbench.showing import FileDiff
    from holdfast.workbench.store import Means, Store, Subject
    from holdfast.workbench.upkeep import Pruned, Usage
    from holdfast.workbench.workbench import Opened, Workbench

__all__ = [
    "EVERYTHING",
    "NOW",
    "Applied",
    "Attempt",
    "BranchReview",
    "Checkpoint",
    "Chmod",
    "Clashing",
    "CommitOrder",
    "Committed",
    "Conflict",
    "Consent",
    "Coverage",
    "Delete",
    "Draft",
    "DraftStatus",
    "Entered",
    "Event",
    "FileDiff",
    "FileStep",
    "Held",
    "Means",
    "Mode",
    "NewContent",
    "NewDirectory",
    "NewFile",
    "NewLink",
    "Node",
    "NodeSort",
    "Occasion",
    "Opened",
    "Progress",
    "Pruned",
    "PublishOrder",
    "Published",
    "Records",
    "Recovered",
    "Rename",
    "RestoreOrder",
    "RestorePreview",
    "Restored",
    "Review",
    "Revision",
    "Scope",
    "Sending",
    "ShownCheckpoint",
    "Status",
    "Store",
    "Subject",
    "Usage",
    "Way",
    "Workbench",
    "apply",
    "checkpoint",
    "checkpoints",
    "compare",
    "deed_of",
    "discard",
    "entering",
    "fork_draft",
    "in_force",
    "list_drafts",
    "open_draft",
    "preview",
    "preview_restore",
    "publish",
    "recover",
    "require_consent",
    "require_no_more",
    "restore",
    "review",
    "review_branch",
    "revise",
    "show",
    "status",
    "storage_use",
    "take_branch",
    "tidy",
    "undo",
]

__getattr__ = face(
    __name__,
    {
        "Applied": "batching",
        "Attempt": "records",
        "BranchReview": "git_branch",
        "Checkpoint": "model",
        "Chmod": "core.batch",
        "Clashing": "core.three_way",
        "CommitOrder": "git_commit",
        "Committed": "model",
        "Conflict": "reviewing",
        "Consent": "core.consent",
        "Coverage": "core.coverage",
        "Delete": "core.batch",
        "Draft": "model",
        "DraftStatus": "overview",
        "EVERYTHING": "core.coverage",
        "Entered": "drafting",
        "Event": "records",
        "FileDiff": "showing",
        "FileStep": "batching",
        "Held": "holding",
        "Means": "store",
        "Mode": "model",
        "NOW": "checkpointing",
        "NewContent": "batching",
        "NewDirectory": "batching",
        "NewFile": "batching",
        "NewLink": "batching",
        "Node": "core.tree",
        "NodeSort": "core.tree",
        "Occasion": "model",
        "Opened": "workbench",
        "Progress": "model",
        "Pruned": "upkeep",
        "PublishOrder": "publishing",
        "Published": "publishing",
        "Records": "records",
        "Recovered": "recovering",
        "Rename": "core.batch",
        "RestoreOrder": "restoring",
        "RestorePreview": "restoring",
        "Restored": "restoring",
        "Review": "reviewing",
        "Revision": "model",
        "Scope": "core.consent",
        "Sending": "core.consent",
        "ShownCheckpoint": "checkpointing",
        "Status": "overview",
        "Store": "store",
        "Subject": "store",
        "Usage": "upkeep",
        "Way": "core.publication",
        "Workbench": "workbench",
        "apply": "batching",
        "checkpoint": "checkpointing",
        "checkpoints": "checkpointing",
        "compare": "checkpointing",
        "deed_of": "model",
        "discard": "drafting",
        "list_drafts": "drafting",
        "entering": "drafting",
        "fork_draft": "forking",
        "in_force": "core.consent",
        "open_draft": "drafting",
        "preview": "reviewing",
        "preview_restore": "restoring",
        "publish": "publishing",
        "recover": "checkpointing",
        "require_consent": "core.consent",
        "require_no_more": "core.consent",
        "restore": "restoring",
        "review": "reviewing",
        "review_branch": "git_branch",
        "revise": "drafting",
        "show": "checkpointing",
        "status": "overview",
        "storage_use": "checkpointing",
        "take_branch": "git_branch",
        "tidy": "checkpointing",
        "undo": "going_back",
    },
)
