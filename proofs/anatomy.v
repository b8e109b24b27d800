(* Anatomy: one part without cuts. Its groups are independent of each other: values of other groups tell nothing. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From proofs Require Import reader dealing cuts participants.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Anatomy.

Variables (n : nat) (V L Z : finType) (plan : {ffun V -> nat} -> Z -> V -> nat -> L).
Hypothesis one : forall (c : {ffun V -> nat}) z v i j, (c v <= n)%N -> (i < c v)%N -> (j < c v)%N -> plan c z v i = plan c z v j -> i = j.

Let never (past : output n V) (A : {set 'I_n}) (c : {ffun V -> nat}) : option ({set 'I_n} * {set 'I_n}) := None.
Let same_plan (past : output n V) (A : {set 'I_n}) := plan.

Lemma never_two past A c A1 A2 : never past A c = Some (A1, A2) -> [/\ A1 :|: A2 = A, [disjoint A1 & A2], A1 != set0 & A2 != set0].
Proof. by []. Qed.

Lemma same_plan_one past : one_of_each (same_plan past).
Proof. by move=> A t z v i j; apply: one; rewrite ffunE -[n in (_ <= n)%N]card_ord max_card. Qed.

Variables (R : realFieldType) (prior : table n V -> R).

(* All ways to give out the values are equally likely before the release. *)
Hypothesis exchangeable : forall t r, prior (moved t r) = prior t.

(* The groups of anatomy; m plays no part. *)
Definition anatomy_groups := published 0 never same_plan [:: setT].

Variables (o : output n V) (J : {set 'I_n}) (known : table n V) (leaf : {set 'I_n} * shown n V) (g : {set 'I_n} * {set V}) (x : 'I_n) (v : V).

(* Whoever sees the groups and knows the values of j people of a group, and of any people of other groups, gives each value that is left 1 / (size - j). *)
Theorem anatomy : leaf \in o -> g \in leaf.2 -> x \in g.1 -> x \notin J -> v \in g.2 -> v \notin known @: (g.1 :&: J) ->
  let knows := [pred s : state n V Z | (anatomy_groups s == o) && [forall y in J, s.1 y == known y]] in
  0 < mass (weight (Z := Z) prior) knows ->
  posterior (weight (Z := Z) prior) knows [pred s : state n V Z | s.1 x == v] = #|g.1 :\: J|%:R^-1.
Proof.
move=> leaf_in g_in x_in x_un v_in v_left knows some.
apply: (theorem_B never_two same_plan_one _ _ leaf_in g_in x_in x_un v_in v_left some) => [|t r _]; last exact: exchangeable.
by rewrite /= /everybody big_nil -setI_eq0 setI0 eqxx.
Qed.

End Anatomy.
