(* Theorem A for leaves that were not tried, below cuts that were made: rings of neighbours.

   People of such a leaf are dealt to signatures, equally many of each value. Who of a signature share a ring is decided by any function that treats the lists
   of its values alike, as the search for neighbours does. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From proofs Require Import reader dealing cuts turns shifts.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope group_scope.

Section Close.

Variables (n w : nat) (V L K Z : finType) (O : eqType).
Notation l := w.+1.
Notation lot := (lot n w Z).
Implicit Types (A B : {set 'I_n}) (r : {perm 'I_n}) (t : table n V) (x : lot) (u v : V).

Variable choose : {set 'I_n} -> {ffun V -> nat} -> option ({set 'I_n} * {set 'I_n}).
Variable plan : {set 'I_n} -> {ffun V -> nat} -> Z -> V -> nat -> L.
Hypothesis two : forall A k A1 A2, choose A k = Some (A1, A2) -> [/\ A1 :|: A2 = A, [disjoint A1 & A2], A1 != set0 & A2 != set0].

(* The plan of leaves gives each place of a value its signature, and the number of the place there. *)
Variable places : {set 'I_n} -> {ffun V -> nat} -> Z -> V -> nat -> {set V} * K.
Hypothesis one : one_of_each places.
Hypothesis balanced : forall A (c : {ffun V -> nat}) z v i, i < c v ->
  v \in (places A c z v i).1 /\ forall u, u \in (places A c z v i).1 -> exists2 j, j < c u & places A c z u j = places A c z v i.

Definition place A t x y := ring_of places A t x.1.1.1 x.1.1.2 y.
Definition list A t x (s : {set V}) v := [set y in A | ((place A t x y).1 == s) && (t y == v)].
Definition lists A t x : {ffun {set V} -> {set {set 'I_n}}} := [ffun s => [set list A t x s v | v : V]].
Definition signatures A t x : {ffun 'I_n -> option {set V}} := [ffun y => if y \in A then Some (place A t x y).1 else None].

(* Rings of neighbours, their values, and whatever is shown of them, by lists and by lots that do not depend on people. *)
Variable view : {set 'I_n} -> {ffun 'I_n -> option {set V}} -> {ffun {set V} -> {set {set 'I_n}}} -> Z -> O.
Definition shown : eqType := [eqType of {ffun 'I_n -> option {set V}} * O].
Definition untried A t x : shown := (signatures A t x, view A (signatures A t x) (lists A t x) x.1.1.1).

Lemma place_moved A t x r y : stays r A -> place A (moved t r) (act r x) y = place A t x (r y).
Proof. exact: ring_of_moved. Qed.

Lemma untried_still A t x r : still r A -> untried A (moved t r) (act r x) = untried A t x.
Proof.
move=> id; have rA := still_stays id.
have same_signatures : signatures A (moved t r) (act r x) = signatures A t x.
  by apply/ffunP=> y; rewrite !ffunE; case: ifP => // yA; rewrite place_moved ?id.
have same_lists : lists A (moved t r) (act r x) = lists A t x.
  apply/ffunP=> s; rewrite !ffunE; apply: eq_imset => v; apply/setP=> y; rewrite !inE.
  by case yA: (y \in A) => //=; rewrite place_moved // ffunE id.
by rewrite /untried same_signatures same_lists.
Qed.

Section Leaf.

Variables (A : {set 'I_n}) (s : {set V}) (u v : V).
Hypothesis u_in : u \in s.
Hypothesis v_in : v \in s.

Section State.

Variables (t : table n V) (x : lot).

Definition together y z := [&& y \in A, z \in A & place A t x y == place A t x z].

Lemma together_differ y z : together y z -> t y = t z -> y = z.
Proof. by case/and3P => yA zA /eqP same; apply: (rings_differ one yA zA same). Qed.

Lemma has_place y : y \in A -> rank (of_value A t (t y)) x.1.1.2 y < counts A t (t y).
Proof. by move=> yA; rewrite ffunE rank_ltn // !inE yA eqxx. Qed.

Lemma own_value y : y \in A -> t y \in (place A t x y).1.
Proof. by move=> yA; have [] := balanced A x.1.1.1 (has_place yA). Qed.

Lemma each_value y a : y \in A -> a \in (place A t x y).1 -> exists2 z, together y z & t z = a.
Proof.
move=> yA; have [_ all] := balanced A x.1.1.1 (has_place yA).
move=> /all[j]; rewrite ffunE => /(rank_onto x.1.1.2)[z].
rewrite !inE => /andP[zA /eqP is_a] is_j same; exists z => //.
by rewrite /together yA zA /= /place /ring_of is_a is_j -same.
Qed.

Definition under y := (y \in A) && ((place A t x y).1 == s).
Definition twin y := if under y then odflt y [pick z | together y z && (t z == tperm u v (t y))] else y.

Lemma twin_value y : under y -> together y (twin y) /\ t (twin y) = tperm u v (t y).
Proof.
move=> under_y; rewrite /twin under_y; case/andP: under_y => yA /eqP is_s.
case: pickP => [z /andP[-> /eqP]|none] //=.
have [|z tog has] := @each_value y (tperm u v (t y)) yA.
  by rewrite is_s; case: tpermP => // _ _; rewrite -is_s own_value.
by have := none z; rewrite /= tog has eqxx.
Qed.

Lemma twin_other y : ~~ under y -> twin y = y.
Proof. by rewrite /twin => /negPf ->. Qed.

Lemma twin_in y : (twin y \in A) = (y \in A).
Proof.
have [under_y|/twin_other -> //] := boolP (under y).
by have [/and3P[-> ->]] := twin_value under_y.
Qed.

Lemma twin_place y : y \in A -> place A t x (twin y) = place A t x y.
Proof.
have [under_y|/twin_other -> //] := boolP (under y).
by have [/and3P[_ _ /eqP ->]] := twin_value under_y.
Qed.

Lemma twin_under y : under (twin y) = under y.
Proof. by rewrite /under twin_in; case yA: (y \in A); rewrite //= twin_place. Qed.

Lemma twin_twice : involutive twin.
Proof.
move=> y; have [under_y|not_under] := boolP (under y); last by rewrite !twin_other.
have [tog first] := twin_value under_y.
have [tog' second] : together (twin y) (twin (twin y)) /\ t (twin (twin y)) = tperm u v (t (twin y)).
  by apply: twin_value; rewrite twin_under.
case/andP: under_y => yA _; apply: together_differ; last by rewrite second first tpermK.
by rewrite /together !twin_in yA !twin_place ?twin_in ?eqxx.
Qed.

Definition rename := perm (inv_inj twin_twice).

Lemma rename_stays : stays rename A.
Proof. by apply: stays_if => y; rewrite permE twin_in. Qed.

Lemma rename_outside y : y \notin A -> rename y = y.
Proof. by move=> yA; rewrite permE twin_other // /under (negPf yA). Qed.

Lemma place_same y : y \in A -> place A (moved t rename) (act rename x) y = place A t x y.
Proof. by move=> yA; rewrite place_moved ?permE ?twin_place //; apply: rename_stays. Qed.

Lemma value_renamed y : moved t rename y = if under y then tperm u v (t y) else t y.
Proof. by rewrite ffunE permE; case: ifP => [/twin_value[] //|/negbT /twin_other ->]. Qed.

Lemma list_renamed s' a : list A (moved t rename) (act rename x) s' a = list A t x s' (if s' == s then tperm u v a else a).
Proof.
apply/setP=> y; rewrite !inE; case yA: (y \in A) => //=; rewrite place_same // value_renamed /under yA /=.
case: eqP => //= ->; case: ifP => // _.
by rewrite -(inj_eq (@perm_inj _ (tperm u v))) tpermK.
Qed.

Lemma untried_same : untried A (moved t rename) (act rename x) = untried A t x.
Proof.
have same_signatures : signatures A (moved t rename) (act rename x) = signatures A t x.
  by apply/ffunP=> y; rewrite !ffunE; case: ifP => // yA; rewrite place_same.
have same_lists : lists A (moved t rename) (act rename x) = lists A t x.
  apply/ffunP=> s'; rewrite !ffunE; apply/setP=> m; apply/imsetP/imsetP => [[a _ ->]|[a _ ->]].
    by rewrite list_renamed; exists (if s' == s then tperm u v a else a).
  exists (if s' == s then tperm u v a else a) => //; rewrite list_renamed.
  by case: (s' == s); rewrite // tpermK.
by rewrite /untried same_signatures same_lists.
Qed.

End State.

Lemma rename_same t x : let r := rename t x in rename (moved t r) (act r x) = r.
Proof.
move=> r; apply/permP=> y; rewrite !permE.
have under_same z : under (moved t r) (act r x) z = under t x z.
  by rewrite /under; case zA: (z \in A); rewrite //= place_same.
have [under_y|not_under] := boolP (under t x y); last by rewrite !twin_other ?under_same.
have [tog has] := twin_value under_y.
have [|tog' has'] := @twin_value (moved t r) (act r x) y; first by rewrite under_same.
set z := twin (moved t r) (act r x) y in tog' has' *.
have [yA zA place_z] : [/\ y \in A, z \in A & place A t x z = place A t x y].
  by case/and3P: tog' => yA zA /eqP; rewrite !place_same.
apply: (@together_differ t x).
  by case/and3P: tog => _ tA /eqP p; rewrite /together zA tA place_z p eqxx.
apply: (@perm_inj _ (tperm u v)); rewrite has.
move: has'; rewrite !value_renamed under_y => <-.
by rewrite /under zA place_z; case/andP: under_y => _ ->.
Qed.

End Leaf.

Section Posterior.

Local Open Scope ring_scope.

Variables (R : realFieldType) (prior : table n V -> R) (cohorts : seq {set 'I_n}).
Hypothesis cohorts_apart : {in cohorts &, forall A B, A != B -> [disjoint A & B]}.
Hypothesis exchangeable : forall t r, {in cohorts, forall A, stays r A} -> prior (moved t r) = prior t.

(* The program of shifts.v, with leaves of neighbours where a part was not tried. *)
Let try := @shifts.try n w V L Z shown choose plan untried.
Notation state := (state n w V Z).
Let published := @shifts.published n w V L Z shown choose plan untried cohorts.

Variable o : seq (seq ({set 'I_n} * (failed n V + shown))).
Definition knows := [pred st : state | (published st == o) && possible st].

(* A leaf that was not tried, and a person under the signature s. *)
Variables (A0 : {set 'I_n}) (sh : shown) (p : 'I_n) (s : {set V}) (v : V).
Hypothesis leaf_in : has (fun part => (A0, inr sh) \in part) o.
Hypothesis p_under : sh.1 p = Some s.
Hypothesis v_in : v \in s.

Definition value_of := {u | u \in s}.
Definition renaming (u : value_of) (st : state) : {perm 'I_n} := rename A0 (valP u) v_in st.1 (st.2 A0).
Definition renamed (u : value_of) (st : state) : state :=
  (moved st.1 (renaming u st), [ffun B => act (renaming u st) (st.2 B)]).

Section State.

Variable st : state.
Hypothesis known : knows st.

Let t := st.1.
Let y0 := st.2 A0.

Lemma cohort_of : exists A, [/\ A \in cohorts, A0 \in leaves try #|A| A t st.2 & try A0 t y0 = inl (inr sh)].
Proof.
case/andP: known => /eqP is_o _; move: leaf_in; rewrite -is_o => /hasP[_ /mapP[A in_cohorts ->] in_run].
by exists A; split=> //; [apply/mapP; exists (A0, inr sh) | apply: leaf_try in_run].
Qed.

Lemma is_shown : sh = untried A0 t y0.
Proof.
have [A [_ _]] := cohort_of; rewrite /try /shifts.try; case: (choose _ _) => [[A1 A2]|[->] //].
by case: ifP.
Qed.

Lemma in_leaf : p \in A0 /\ (place A0 t y0 p).1 = s.
Proof. by move: p_under; rewrite is_shown /= ffunE; case pA: (p \in A0) => // -[]. Qed.

Lemma renamed_published (u : value_of) :
  published (renamed u st) = published st /\ {in cohorts, forall A, stays (renaming u st) A}.
Proof.
have [A [A_in A0_in at_A0]] := cohort_of.
have some : A0 != set0 by apply/set0Pn; exists p; have [] := in_leaf.
have inside := rename_stays A0 (valP u) v_in t y0; have outside := @rename_outside A0 s (val u) v (valP u) v_in t y0.
have cuts_two := try_two (plan := plan) (untried := untried) two.
have sides := try_sides (plan := plan) (untried := untried) two.
have still_try := try_still plan two untried_still.
have same f : try A0 t y0 = inl f -> try A0 (moved t (renaming u st)) (act (renaming u st) y0) = inl f.
  rewrite at_A0 => -[<-]; rewrite is_shown; move: at_A0.
  rewrite /try /shifts.try counts_moved; last exact: inside.
  case: (choose _ _) => [[A1 A2]|_]; first by case: ifP.
  by rewrite untried_same.
have sub : A0 \subset A := leaves_in cuts_two A0_in.
have part B : B \in cohorts -> B = A \/ [disjoint A0 & B].
  move=> B_in; have [->|BA] := eqVneq B A; [by left | right].
  by apply: disjointWl sub _; apply: cohorts_apart; rewrite // eq_sym.
split=> [|B B_in].
  rewrite /published /shifts.published; apply/eq_in_map => B B_in /=.
  rewrite (@shifts.run_same _ _ _ _ _ _ choose plan untried _ _ _ _ (other_lots (@act n w Z) A0 st.2 (renaming u st) (act (renaming u st) y0))); last first.
    by move=> C; rewrite ffunE /other_lots; case: eqP => // ->.
  have [->|dis] := part B B_in.
    exact: (run_leaf (lots := st.2) cuts_two sides still_try some inside outside same A0_in).
  exact: (run_elsewhere t st.2 (act (renaming u st) y0) cuts_two still_try some outside _ dis).
have [->|dis] := part B B_in; first exact: (stays_around inside outside).
by apply: still_stays; apply: still_elsewhere dis.
Qed.

Lemma renamed_knows (u : value_of) : knows (renamed u st).
Proof.
apply/andP; split; first by have [-> _] := renamed_published u; case/andP: known.
apply/forallP=> B; rewrite ffunE; case/andP: known => _ /forallP/(_ B)/forallP all; apply/forallP=> X.
rewrite /valid_ring ffunE; have := all (renaming u st @: X).
by rewrite /valid_ring card_imset //; apply: perm_inj.
Qed.

Lemma renamed_weight (u : value_of) : weight prior (renamed u st) = weight prior st.
Proof.
have /andP[_ still_possible] := renamed_knows u; case/andP: known => _ was_possible.
by rewrite /weight still_possible was_possible exchangeable //; have [] := renamed_published u.
Qed.

Lemma renamed_twice (u : value_of) : renamed u (renamed u st) = st.
Proof.
have again : renaming u (renamed u st) = renaming u st by rewrite /renaming /= ffunE rename_same.
have square : (renaming u st * renaming u st = 1)%g.
  by apply/permP=> y; rewrite permM perm1 !permE twin_twice //; apply: valP.
rewrite {1}/renamed again [RHS]surjective_pairing /=; congr (_, _); first by rewrite moved_moved square moved1.
apply/ffunP=> B; rewrite !ffunE /act /= !mulgA square !mul1g; case: (st.2 B) => [[[z q] c] h] /=; congr (_, _, _, _).
apply/ffunP=> X; rewrite !ffunE -imset_comp; congr (h _).
by rewrite -[RHS]imset_id; apply: eq_imset => y /=; rewrite -permM square perm1.
Qed.

Lemma one_renaming : #|[pred u : value_of | (renamed u st).1 p == v]| = 1%N.
Proof.
have [pA is_s] := in_leaf; have own : t p \in s by rewrite -is_s own_value.
have under_p : under A0 s t y0 p by rewrite /under pA is_s eqxx.
rewrite -(card1 (exist (fun a => a \in s) (t p) own : value_of)); apply: eq_card => u; rewrite !inE value_renamed under_p.
rewrite -(inj_eq (@perm_inj _ (tperm (val u) v))) tpermK tpermR.
by apply/eqP/eqP => [same|-> //]; apply: val_inj.
Qed.

End State.

(* The reader knows rings and values of all leaves, and circles and worlds of leaves that were tried. *)
Theorem theorem_A_untried : 0 < mass (weight prior) knows -> posterior (weight prior) knows [pred st : state | st.1 p == v] = #|s|%:R^-1.
Proof.
move=> some; rewrite -card_sig; apply: (exchange_exactly (move := renamed)) => //.
- by move=> u st1 st2 _ _ same; rewrite -(renamed_twice st1 u) -(renamed_twice st2 u) same.
- by move=> u st /renamed_knows.
- by move=> u st /renamed_weight.
exact: one_renaming.
Qed.

End Posterior.

End Close.
