(* Rings: people of each value in a uniform order go into places that counts and ties have planned.

   People are numbers below n. A table gives everybody a value. The lots of a part are a tie (any type) and an order of all people (a permutation): whoever of
   the part has the i-th number among those of the same value takes the i-th place of this value. A plan says the ring of each place. *)

From mathcomp Require Import all_ssreflect all_fingroup.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope group_scope.

Section Dealing.

Variables (n : nat) (V L Z : finType).
Implicit Types (A B : {set 'I_n}) (q r : {perm 'I_n}) (x y : 'I_n).

Definition table := {ffun 'I_n -> V}.

(* The table in which everybody has the value of whom r takes them to. *)
Definition moved (t : table) r : table := [ffun x => t (r x)].

Lemma moved_moved (t : table) r1 r2 : moved (moved t r1) r2 = moved t (r2 * r1).
Proof. by apply/ffunP=> x; rewrite !ffunE permM. Qed.

Lemma moved1 (t : table) : moved t 1 = t.
Proof. by apply/ffunP=> x; rewrite ffunE perm1. Qed.

Lemma moved_inj r : injective (moved^~ r).
Proof. by move=> t1 t2 same; rewrite -[t1]moved1 -[t2]moved1 -(mulVg r) -!moved_moved same. Qed.

(* r takes the people of A to people of A. *)
Definition stays r A := r @: A == A.

Lemma staysP r A : stays r A -> forall x, (r x \in A) = (x \in A).
Proof. by move/eqP=> same x; rewrite -{1}same mem_imset //; apply: perm_inj. Qed.

Lemma stays_if r A : (forall x, x \in A -> r x \in A) -> stays r A.
Proof.
move=> into; rewrite /stays eqEcard card_imset ?leqnn ?andbT; last exact: perm_inj.
by apply/subsetP=> _ /imsetP[x xA ->]; apply: into.
Qed.

Definition rank B q x := #|[set y in B | q y < q x]|.

Lemma rank_moved A B q r x : (forall y, (y \in B) = (r y \in A)) -> rank B (r * q) x = rank A q (r x).
Proof.
move=> same; rewrite /rank -(card_imset _ (@perm_inj _ r)); congr #|pred_of_set _|.
apply/setP=> y; apply/imsetP/idP => [[z + ->]|]; rewrite inE.
  by rewrite inE !permM same.
move=> yA; exists (r^-1 y); last by rewrite permKV.
by rewrite inE same !permM permKV.
Qed.

Lemma rank_inj B q : {in B &, injective (rank B q)}.
Proof.
move=> x y xB yB same; apply: (@perm_inj _ q); apply/val_inj => /=.
case: (ltngtP (q x) (q y)) => // less.
  suff : rank B q x < rank B q y by rewrite same ltnn.
  apply: proper_card; apply/properP; split.
    by apply/subsetP=> z; rewrite !inE => /andP[-> /= /ltn_trans]; apply.
  by exists x; rewrite !inE ?xB ?ltnn ?andbF //= less.
suff : rank B q y < rank B q x by rewrite same ltnn.
apply: proper_card; apply/properP; split.
  by apply/subsetP=> z; rewrite !inE => /andP[-> /= /ltn_trans]; apply.
by exists y; rewrite !inE ?yB ?ltnn ?andbF //= less.
Qed.

Lemma rank_ltn B q x : x \in B -> rank B q x < #|B|.
Proof.
move=> xB; apply: proper_card; apply/properP; split; first by apply/subsetP=> y; rewrite inE => /andP[].
by exists x; rewrite // inE ltnn andbF.
Qed.

Definition of_value A (t : table) v := [set x in A | t x == v].

Definition counts A (t : table) : {ffun V -> nat} := [ffun v => #|of_value A t v|].

Lemma of_value_moved A t r v : stays r A -> forall x, (x \in of_value A (moved t r) v) = (r x \in of_value A t v).
Proof. by move=> rA x; rewrite !inE ffunE (staysP rA). Qed.

Lemma counts_moved A t r : stays r A -> counts A (moved t r) = counts A t.
Proof.
move=> rA; apply/ffunP=> v; rewrite !ffunE -(card_imset _ (@perm_inj _ r)); congr #|pred_of_set _|.
apply/setP=> y; apply/imsetP/idP => [[x + ->]|yA]; first by rewrite of_value_moved.
by exists (r^-1 y); rewrite ?permKV // of_value_moved ?permKV.
Qed.

(* The ring of each place of a part, by counts and ties. Of each value a ring has one place at most. *)
Variable plan : {set 'I_n} -> {ffun V -> nat} -> Z -> V -> nat -> L.
Definition one_of_each := forall A (t : table) z v i j, i < counts A t v -> j < counts A t v ->
  plan A (counts A t) z v i = plan A (counts A t) z v j -> i = j.

Definition ring_of A (t : table) z q x : L := plan A (counts A t) z (t x) (rank (of_value A t (t x)) q x).

(* Rings follow the people: a permutation inside of a part takes rings along. *)
Lemma ring_of_moved A t r z q x : stays r A -> ring_of A (moved t r) z (r * q) x = ring_of A t z q (r x).
Proof.
move=> rA; rewrite /ring_of counts_moved // ffunE; congr plan.
by apply: rank_moved => y; apply: of_value_moved.
Qed.

(* The same for a permutation that moves nobody of the part. *)
Definition still r A := forall x, x \in A -> r x = x.

Lemma still_stays r A : still r A -> stays r A.
Proof. by move=> id; apply: stays_if => x xA; rewrite id. Qed.

Lemma rings_differ A t z q x y : one_of_each -> x \in A -> y \in A -> ring_of A t z q x = ring_of A t z q y -> t x = t y -> x = y.
Proof.
move=> one xA yA; rewrite /ring_of => + same; rewrite same.
have [xv yv] : x \in of_value A t (t y) /\ y \in of_value A t (t y) by rewrite !inE same eqxx xA yA.
by move/(one A t z (t y)) => /(_ _ _) /rank_inj; apply; rewrite // ffunE rank_ltn.
Qed.

(* A group: its people, and its values, as published. *)
Definition members A (f : 'I_n -> L) l := [set x in A | f x == l].
Definition group A (f : 'I_n -> L) (t : table) l : {set 'I_n} * {set V} := (members A f l, t @: members A f l).
Definition groups A f t := [set group A f t l | l : L].

End Dealing.
