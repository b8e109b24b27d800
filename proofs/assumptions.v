(* What each theorem assumes beside its own hypotheses: nothing. *)

From proofs Require reader anatomy releases participants shifts close strangers balanced equal conflicts second_try cuts witness.

Print Assumptions reader.exchange.
Print Assumptions reader.exchange_exactly.
Print Assumptions reader.sees_less.
Print Assumptions reader.orbit_uniform.
Print Assumptions cuts.run_moved.
Print Assumptions cuts.run_kept.
Print Assumptions cuts.run_leaf.
Print Assumptions participants.theorem_B.
Print Assumptions anatomy.anatomy.
Print Assumptions releases.all_releases.
Print Assumptions shifts.theorem_A.
Print Assumptions shifts.theorem_A_exactly.
Print Assumptions close.theorem_A_untried.
Print Assumptions strangers.theorem_A_all_releases.
Print Assumptions balanced.balanced_cohorts.
Print Assumptions equal.equal_shares.
Print Assumptions conflicts.conflicts.
Print Assumptions second_try.draws_alike.
Print Assumptions second_try.one_try.
Print Assumptions second_try.second_try.
Print Assumptions witness.levels_one.
Print Assumptions witness.levels_balanced.
Print Assumptions witness.window_valid.
