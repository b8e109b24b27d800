(* Balanced cohorts: renaming the values of a signature changes nothing that is published.

   Every cohort is dealt to signatures. The k-th place of a signature takes one person of each of its values, so that the people of a cohort under a signature
   are equally many of each value. What is published, at all releases, follows from who is under which signature, and for each signature from the family of
   its lists: the sets of people with the same value. Lists are not ordered: the split treats them alike, a bucket's height is the length of the longest. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From proofs Require Import reader dealing turns.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope group_scope.

Section Balanced.

Variables (n : nat) (V K Z C E : finType) (O : eqType).
Implicit Types (x y : 'I_n) (u v : V).

(* The cohort of everybody. *)
Variable cohort : 'I_n -> C.
Definition part (c : C) := [set x | cohort x == c].

(* A plan gives each place of a value its signature, and the number of the place there. *)
Variable plan : {set 'I_n} -> {ffun V -> nat} -> Z -> V -> nat -> {set V} * K.
Hypothesis one : one_of_each plan.
Hypothesis balanced : forall A (c : {ffun V -> nat}) z v i, i < c v ->
  v \in (plan A c z v i).1 /\ forall u, u \in (plan A c z v i).1 -> exists2 j, j < c u & plan A c z u j = plan A c z v i.

Definition all_lots := {ffun C -> Z * {perm 'I_n}}.
Implicit Types (t : table n V) (lots : all_lots).
Definition act (r : {perm 'I_n}) (lots : all_lots) : all_lots := [ffun c => ((lots c).1, r * (lots c).2)].

Definition place t (lots : all_lots) x := ring_of plan (part (cohort x)) t (lots (cohort x)).1 (lots (cohort x)).2 x.

(* People of one cohort and one place, and of one signature and one value. *)
Definition together t lots x y := (cohort x == cohort y) && (place t lots x == place t lots y).
Definition list t lots (s : {set V}) v := [set x | ((place t lots x).1 == s) && (t x == v)].
Definition lists t lots : {ffun {set V} -> {set {set 'I_n}}} := [ffun s => [set list t lots s v | v : V]].
Definition signatures t lots : {ffun 'I_n -> {set V}} := [ffun x => (place t lots x).1].

Lemma together_differ t lots x y : together t lots x y -> t x = t y -> x = y.
Proof.
case/andP => /eqP c /eqP; rewrite /place c => same.
by apply: (rings_differ one _ _ same); rewrite inE ?c eqxx.
Qed.

Lemma has_place t lots x : rank (of_value (part (cohort x)) t (t x)) (lots (cohort x)).2 x < counts (part (cohort x)) t (t x).
Proof. by rewrite ffunE rank_ltn // !inE !eqxx. Qed.

Lemma own_value t lots x : t x \in (place t lots x).1.
Proof. by have [] := balanced (part (cohort x)) (lots (cohort x)).1 (has_place t lots x). Qed.

Lemma each_value t lots x u : u \in (place t lots x).1 -> exists2 y, together t lots x y & t y = u.
Proof.
have [_ all] := balanced (part (cohort x)) (lots (cohort x)).1 (has_place t lots x).
move=> /all[j]; rewrite ffunE => /(rank_onto (lots (cohort x)).2)[y].
rewrite !inE => /andP[/eqP c /eqP is_u] is_j same; exists y => //.
by rewrite /together c eqxx /= /place c /ring_of is_u is_j -same.
Qed.

Section Renamed.

Variables (t : table n V) (lots : all_lots) (s : {set V}) (u v : V).
Hypothesis u_in : u \in s.
Hypothesis v_in : v \in s.

(* Whoever is in the same place with the renamed value. *)
Definition twin x := if (place t lots x).1 == s then odflt x [pick y | together t lots x y && (t y == tperm u v (t x))] else x.

Lemma twin_value x : (place t lots x).1 = s -> together t lots x (twin x) /\ t (twin x) = tperm u v (t x).
Proof.
move=> is_s; rewrite /twin is_s eqxx; case: pickP => [y /andP[-> /eqP]|none] //=.
have [|y tog is_v] := @each_value t lots x (tperm u v (t x)).
  by rewrite is_s; case: tpermP => // _ _; rewrite -is_s own_value.
by have := none y; rewrite /= tog is_v eqxx.
Qed.

Lemma twin_other x : (place t lots x).1 != s -> twin x = x.
Proof. by rewrite /twin => /negPf ->. Qed.

Lemma twin_together x : together t lots x (twin x).
Proof.
have [/twin_value[] //|/twin_other ->] := eqVneq (place t lots x).1 s.
by rewrite /together !eqxx.
Qed.

Lemma twin_place x : place t lots (twin x) = place t lots x.
Proof. by case/andP: (twin_together x) => _ /eqP ->. Qed.

Lemma twin_cohort x : cohort (twin x) = cohort x.
Proof. by case/andP: (twin_together x) => /eqP ->. Qed.

Lemma twin_twice : involutive twin.
Proof.
move=> x; have [is_s|not_s] := eqVneq (place t lots x).1 s; last by rewrite !twin_other.
have [_ first] := twin_value is_s.
have [_ second] : together t lots (twin x) (twin (twin x)) /\ t (twin (twin x)) = tperm u v (t (twin x)).
  by apply: twin_value; rewrite twin_place.
apply: (@together_differ t lots); first by rewrite /together !twin_cohort !twin_place !eqxx.
by rewrite second first tpermK.
Qed.

Definition rename := perm (inv_inj twin_twice).

Lemma rename_stays c : stays rename (part c).
Proof. by apply: stays_if => x; rewrite !inE permE twin_cohort. Qed.

Lemma place_same x : place (moved t rename) (act rename lots) x = place t lots x.
Proof.
rewrite -[RHS]twin_place /place ffunE /= (ring_of_moved plan t _ _ _ (rename_stays _)) permE.
by rewrite twin_cohort.
Qed.

Lemma signatures_same : signatures (moved t rename) (act rename lots) = signatures t lots.
Proof. by apply/ffunP=> x; rewrite !ffunE place_same. Qed.

Lemma value_renamed x : moved t rename x = if (place t lots x).1 == s then tperm u v (t x) else t x.
Proof.
rewrite ffunE permE; case: eqP => [/twin_value[] //|/eqP not_s]; by rewrite twin_other.
Qed.

Lemma list_renamed s' w : list (moved t rename) (act rename lots) s' w = list t lots s' (if s' == s then tperm u v w else w).
Proof.
apply/setP=> x; rewrite !inE place_same value_renamed; case: eqP => //= ->.
by case: ifP => // _; rewrite -(inj_eq (@perm_inj _ (tperm u v))) tpermK.
Qed.

Lemma lists_same : lists (moved t rename) (act rename lots) = lists t lots.
Proof.
apply/ffunP=> s'; rewrite !ffunE; apply/setP=> l; apply/imsetP/imsetP => [[w _ ->]|[w _ ->]].
  by rewrite list_renamed; exists (if s' == s then tperm u v w else w).
exists (if s' == s then tperm u v w else w) => //; rewrite list_renamed.
by case: (s' == s); rewrite // tpermK.
Qed.

End Renamed.

Lemma rename_same t lots (s : {set V}) u v (u_in : u \in s) (v_in : v \in s) :
  let r := rename t lots u_in v_in in rename (moved t r) (act r lots) u_in v_in = r.
Proof.
move=> r; apply/permP=> x; rewrite !permE.
have [is_s|not_s] := eqVneq (place t lots x).1 s; last by rewrite !twin_other ?place_same.
have [tog has] := twin_value u_in v_in is_s.
have [|tog' has'] := @twin_value (moved t r) (act r lots) s u v u_in v_in x; first by rewrite place_same.
set y := twin _ _ _ _ _ _ in tog' has' *.
have [place_y cohort_y] : place t lots y = place t lots x /\ cohort y = cohort x.
  by case/andP: tog' => /eqP -> /eqP; rewrite !place_same => ->.
apply: (@together_differ t lots).
  by case/andP: tog => /eqP c /eqP p; rewrite /together cohort_y place_y c p !eqxx.
apply: (@perm_inj _ (tperm u v)); rewrite has.
by move: has'; rewrite !value_renamed place_y is_s eqxx => ->.
Qed.

Lemma act_act r1 r2 lots : act r1 (act r2 lots) = act (r1 * r2) lots.
Proof. by apply/ffunP=> c; rewrite !ffunE /= mulgA. Qed.

Lemma act1 lots : act 1 lots = lots.
Proof. by apply/ffunP=> c; rewrite !ffunE mul1g; case: (lots c). Qed.

Section Posterior.

Local Open Scope ring_scope.

Variables (R : realFieldType) (prior : table n V -> R).
Hypothesis exchangeable : forall t r, (forall c, stays r (part c)) -> prior (moved t r) = prior t.

(* The releases follow from lists, and from other draws. *)
Variable view : {ffun 'I_n -> {set V}} -> {ffun {set V} -> {set {set 'I_n}}} -> E -> O.

Definition state := (table n V * all_lots * E)%type.
Definition weight (st : state) : R := prior st.1.1 / #|{: all_lots * E}|%:R.
Definition published (st : state) := (signatures st.1.1 st.1.2, view (signatures st.1.1 st.1.2) (lists st.1.1 st.1.2) st.2).

Variables (o : {ffun 'I_n -> {set V}} * O) (x : 'I_n) (v : V).
Hypothesis v_in : v \in o.1 x.
Definition knows := [pred st : state | published st == o].

Definition value_of_signature := {u | u \in o.1 x}.

Definition renamed (u : value_of_signature) (st : state) : state :=
  let r := rename st.1.1 st.1.2 (valP u) v_in in (moved st.1.1 r, act r st.1.2, st.2).

Lemma renamed_twice (u : value_of_signature) : involutive (renamed u).
Proof.
move=> [[t lots] e]; rewrite /renamed /= rename_same.
have square r : r = rename t lots (valP u) v_in -> (r * r = 1)%g.
  by move=> ->; apply/permP=> y; rewrite permM perm1 !permE twin_twice //; apply: valP.
by rewrite moved_moved act_act square // moved1 act1.
Qed.

Lemma renamed_knows (u : value_of_signature) st : knows st -> knows (renamed u st).
Proof. by move=> /eqP known; apply/eqP; rewrite -known /published /= signatures_same lists_same. Qed.

Lemma renamed_weight (u : value_of_signature) st : weight (renamed u st) = weight st.
Proof. by rewrite /weight exchangeable // => c; apply: rename_stays. Qed.

Lemma one_renaming st : knows st -> #|[pred u : value_of_signature | (renamed u st).1.1 x == v]| = 1%N.
Proof.
move=> /eqP known; have is_s : (place st.1.1 st.1.2 x).1 = o.1 x by rewrite -known ffunE.
have own : st.1.1 x \in o.1 x by rewrite -is_s own_value.
rewrite -(card1 (exist (fun w => w \in o.1 x) (st.1.1 x) own : value_of_signature)); apply: eq_card => u; rewrite !inE value_renamed is_s eqxx.
rewrite -(inj_eq (@perm_inj _ (tperm (val u) v))) tpermK tpermR.
by apply/eqP/eqP => [same|-> //]; apply: val_inj.
Qed.

Theorem balanced_cohorts : 0 < mass weight knows -> posterior weight knows [pred st : state | st.1.1 x == v] = #|o.1 x|%:R^-1.
Proof.
move=> some; rewrite -card_sig; apply: (exchange_exactly (move := renamed)) => //.
- by move=> u st1 st2 _ _; apply: inv_inj; apply: renamed_twice.
- exact: renamed_knows.
- by move=> u st _; apply: renamed_weight.
- exact: one_renaming.
Qed.

End Posterior.

End Balanced.
