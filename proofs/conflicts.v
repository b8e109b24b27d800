(* Conflicts: values that share a secret are not in one group. Then each secret is as safe as a value. *)

From mathcomp Require Import all_ssreflect all_algebra.
From proofs Require Import reader.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Conflicts.

Variables (R : realFieldType) (S V : finType) (weight : S -> R) (K : pred S) (value : S -> V) (signature : {set V}) (bound : R).
Hypothesis bound_ge0 : 0 <= bound.

(* In all states that the reader thinks possible the person has a value of the signature, and each with at most the bound. *)
Hypothesis in_signature : forall s, K s -> value s \in signature.
Hypothesis bounded : forall v, v \in signature -> posterior weight K [pred s | value s == v] <= bound.

(* A secret is a set of values: of a category, or with one value in a column. No two values of the signature have it in common. *)
Variable secret : pred V.
Hypothesis no_conflict : {in signature &, forall u v, secret u -> secret v -> u = v}.

Theorem conflicts : posterior weight K [pred s | secret (value s)] <= bound.
Proof.
have [v /andP[v_in v_has]|none] := pickP [pred v | (v \in signature) && secret v].
  apply: le_trans (bounded v_in); rewrite le_eqVlt; apply/orP; left; apply/eqP.
  congr (_ / _); apply: eq_bigl => s /=; case Ks: (K s) => //=.
  by apply/idP/eqP => [has|->//]; apply: no_conflict => //; apply: in_signature.
rewrite /posterior /mass big_pred0 ?mul0r // => s /=; case Ks: (K s) => //=.
by have := none (value s); rewrite /= in_signature.
Qed.

End Conflicts.
